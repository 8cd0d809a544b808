// Admission of request heads: the table, the limits, and that what was judged is what is sent.
#include <gtest/gtest.h>

#include "http/http.h"
#include "http/testing.h"

namespace {

http::Admission admission(std::string_view leg) {
  http::Admission out;
  out.leg = leg == "tls" ? http::Leg::tls : leg == "proxy" ? http::Leg::proxy : http::Leg::plain;
  out.protected_names = {"my-token"};
  return out;
}

// The way the gateway goes: find the end, then parse.
http::Parsed<http::RequestHead> admit(std::string_view text, const http::Admission& how) {
  const auto end = http::find_head_end(text, 0);
  if (!end) return std::unexpected(end.error());
  if (*end == 0) return std::unexpected(http::Rejection{0, "need-more", {}});
  return http::parse_request(text.substr(0, *end), how);
}

std::string verdict(const http::Parsed<http::RequestHead>& head) {
  return head ? "ok" : std::to_string(head.error().status) + ":" + head.error().reason;
}

TEST(Request, TableOfHeads) {
  const auto rows = http_test::rows("http_requests.txt", 3);
  ASSERT_GT(rows.size(), 100U);
  for (const auto& row : rows) {
    SCOPED_TRACE("line " + std::to_string(row.line) + " " + row.words[0]);
    const auto how = admission(row.words[2]);
    const auto head = admit(row.text, how);
    ASSERT_EQ(verdict(head), row.words[1]);
    if (!head || row.written.empty()) continue;
    EXPECT_EQ(http::write_request(*head), row.written);
  }
}

// What policy saw is what is sent: the bytes that go out parse to the very same value.
TEST(Request, WrittenHeadsParseToTheSameValue) {
  for (const auto& row : http_test::rows("http_requests.txt", 3)) {
    SCOPED_TRACE("line " + std::to_string(row.line));
    const auto first = admit(row.text, admission(row.words[2]));
    if (!first || first->host.empty()) continue;
    auto expected = *first;
    expected.minor = 1;
    const auto leg = first->method == "CONNECT" ? "proxy" : "tls";
    const auto second = admit(http::write_request(*first), admission(leg));
    ASSERT_TRUE(second) << second.error().text;
    if (first->method == "CONNECT") expected.port = second->port;
    EXPECT_EQ(*second, expected);
  }
}

TEST(Request, N122LimitsOfHeadFieldsAndTarget) {
  const std::string start = "GET / HTTP/1.1\r\nHost: h\r\n";
  const auto plain = admission("plain");
  const auto of = [&](const std::string& text) { return verdict(admit(text, plain)); };
  EXPECT_EQ(of(start + "X: " + std::string(60'000, 'a') + "\r\n\r\n"), "ok");
  EXPECT_EQ(of(start + "X: " + std::string(65'536, 'a') + "\r\n\r\n"), "431:head-length");
  EXPECT_EQ(of(start + "X: " + std::string(65'536, 'a')), "431:head-length");
  std::string many = start;
  for (int i = 0; i < 199; ++i) many += "X: a\r\n";
  EXPECT_EQ(of(many + "\r\n"), "ok");
  EXPECT_EQ(of(many + "X: a\r\n\r\n"), "431:fields");
  const auto get = [](std::size_t size) {
    return "GET /" + std::string(size - 1, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n";
  };
  EXPECT_EQ(of(get(http::kMaxTarget)), "ok");
  EXPECT_EQ(of(get(http::kMaxTarget + 1)), "414:target-length");
  EXPECT_EQ(of(get(100'000)), "414:target-length");
}

// N106: the second request of one segment is not read with the first.
TEST(Request, EndOfHeadIsTheFirstEmptyLine) {
  const std::string one = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string two = one + "DELETE /b HTTP/1.1\r\nHost: h\r\n\r\n";
  EXPECT_EQ(http::find_head_end(two, 0), one.size());
  for (std::size_t size = 1; size < one.size(); ++size) {
    EXPECT_EQ(http::find_head_end(std::string_view(one).substr(0, size), size - 1), 0U) << size;
  }
  for (std::size_t seen = 0; seen < one.size(); ++seen) {
    EXPECT_EQ(http::find_head_end(one, seen), one.size()) << seen;
  }
}

// Positive control of Protection::strict_http: without it the smuggled framing goes on.
TEST(Request, CarelessAdmissionLetsBothFramingsThrough) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n";
  http::Admission how;
  EXPECT_EQ(verdict(admit(text, how)), "400:framing");
  how.strictness = http::Strictness::careless;
  const auto head = admit(text, how);
  ASSERT_TRUE(head);
  const std::string sent = http::write_request(*head);
  EXPECT_NE(sent.find("Content-Length: 5"), std::string::npos);
  EXPECT_NE(sent.find("Transfer-Encoding: chunked"), std::string::npos);
}

TEST(Request, PathAndQuery) {
  const auto head = admit("GET /a/b?c=/d?e HTTP/1.1\r\nHost: h\r\n\r\n", admission("plain"));
  ASSERT_TRUE(head);
  EXPECT_EQ(http::path_of(*head), "/a/b");
  EXPECT_EQ(http::query_of(*head), "c=/d?e");
}

// N107: what the gateway sets after parsing is sent whatever Connection named.
TEST(Request, WhatIsNotSentOnIsKnown) {
  const std::string text =
      "GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\nVia: 1.1 b\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n";
  std::vector<http::Field> dropped;
  const auto head = http::parse_request(text, {}, &dropped);
  ASSERT_TRUE(head);
  std::string names;
  for (const http::Field& field : dropped) names += field.name + " ";
  EXPECT_EQ(names, "host via connection x-hop ");
}

TEST(Request, InjectedFieldsAreNotStripped) {
  auto head = admit(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: authorization\r\nAuthorization: theirs\r\n\r\n",
      admission("tls"));
  ASSERT_TRUE(head);
  EXPECT_EQ(http::find_field(head->fields, "authorization"), nullptr);
  http::set_field(head->fields, "authorization", "Bearer real");
  EXPECT_NE(http::write_request(*head).find("authorization: Bearer real\r\n"), std::string::npos);
}

TEST(Fields, SetReplacesEveryOneInPlace) {
  std::vector<http::Field> fields = {{"a", "1", "A"}, {"b", "2", "B"}, {"a", "3", "A"}};
  http::set_field(fields, "a", "4");
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].value, "4");
  http::set_field(fields, "c", "5");
  EXPECT_EQ(fields[2], (http::Field{"c", "5", ""}));
  EXPECT_EQ(http::remove_fields(fields, "b"), 1U);
}

}  // namespace
