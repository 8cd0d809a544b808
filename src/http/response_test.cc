// Admission of response heads: the table, and that written heads parse to the same value.
#include <gtest/gtest.h>

#include "http/http.h"
#include "http/testing.h"

namespace {

http::RequestHead request(std::string_view kind) {
  http::RequestHead head;
  head.method = kind == "WS" ? "GET" : kind;
  head.target = "/";
  head.host = "h";
  head.websocket = kind == "WS";
  if (head.websocket) head.fields.push_back({"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", ""});
  return head;
}

http::Parsed<http::ResponseHead> admit(std::string_view text, const http::RequestHead& asked) {
  auto end = http::find_head_end(text, 0);
  if (!end) {
    end.error().status = 502;
    return std::unexpected(end.error());
  }
  return http::parse_response(text.substr(0, *end), asked);
}

std::string verdict(const http::Parsed<http::ResponseHead>& head) {
  if (!head) return head.error().reason;
  std::string out;
  switch (head->body.framing) {
    case http::Framing::none:
      out = "none";
      break;
    case http::Framing::length:
      out = "length=" + std::to_string(head->body.length);
      break;
    case http::Framing::chunked:
      out = "chunked";
      break;
    case http::Framing::until_close:
      out = "close";
      break;
  }
  return head->keep_alive ? out : out + "!";
}

TEST(Response, TableOfHeads) {
  const auto rows = http_test::rows("http_responses.txt", 3);
  ASSERT_GT(rows.size(), 50U);
  for (const auto& row : rows) {
    SCOPED_TRACE("line " + std::to_string(row.line) + " " + row.words[0]);
    const auto asked = request(row.words[2]);
    const auto head = admit(row.text, asked);
    ASSERT_EQ(verdict(head), row.words[1]);
    if (!head) {
      EXPECT_EQ(head.error().status, 502U);
      continue;
    }
    const std::string sent = http::write_response(*head);
    if (!row.written.empty()) EXPECT_EQ(sent, row.written);
    auto expected = *head;
    expected.minor = 1;
    const auto again = admit(sent, asked);
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(*again, expected);
  }
}

TEST(Response, InterimIsNotTheAnswer) {
  const auto asked = request("WS");
  EXPECT_TRUE(http::interim(*admit("HTTP/1.1 100 Continue\r\n\r\n", asked)));
  EXPECT_FALSE(http::interim(*admit("HTTP/1.1 200 OK\r\n\r\n", asked)));
}

TEST(Refusal, SaysWhatWouldAllowIt) {
  http::Refusal refusal{
      "path", "egress-1", "api.test", 443, "GET", "/a\"b", "[[egress]]\nhost = \"api.test\"\n"};
  const std::string body = http::refusal_body(refusal);
  EXPECT_EQ(body,
            "{\"reason\":\"path\",\"rule\":\"egress-1\",\"host\":\"api.test\",\"port\":443,"
            "\"method\":\"GET\","
            "\"path\":\"/a\\\"b\",\"fix\":" +
                base::json_string(refusal.fix) + "}\n");
  refusal.fix = "";
  EXPECT_NE(http::refusal_body(refusal).find("\"fix\":null"), std::string::npos);
  const std::string kept = http::refusal_response(403, refusal, http::After::keep);
  const auto head = admit(kept, request("GET"));
  ASSERT_TRUE(head) << head.error().text;
  EXPECT_EQ(head->status, 403U);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_EQ(head->body.length, http::refusal_body(refusal).size());
  EXPECT_NE(kept.find("X-Cerco-Deny: path\r\n"), std::string::npos);
  refusal.method = "HEAD";
  EXPECT_TRUE(http::refusal_response(403, refusal, http::After::close)
                  .ends_with("Connection: close\r\n\r\n"));
}

TEST(Refusal, ReasonsCannotSplitTheHead) {
  const std::string text = http::rejection_response({400, "a\r\nSet-Cookie: b", "t"});
  EXPECT_EQ(text.find("\r\nSet-Cookie"), std::string::npos);
  EXPECT_NE(text.find("Connection: close\r\n"), std::string::npos);
}

}  // namespace
