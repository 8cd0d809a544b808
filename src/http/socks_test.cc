// SOCKS5 messages: whole, in pieces, and such that lie (N37, N144-N146).
#include "http/socks.h"

#include <gtest/gtest.h>

namespace {

using http::SocksMethod;
using http::SocksReply;
using http::SocksRequest;

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}
std::string named(std::string_view name, int port = 443) {
  return bytes({5, 1, 0, 3, static_cast<int>(name.size())}) + std::string(name) +
         bytes({port >> 8, port & 0xff});
}

TEST(Socks, AGreetingChoosesWhatAsksForNothing) {
  EXPECT_EQ(http::read_socks_greeting(bytes({5, 1, 0}))->method, SocksMethod::none);
  EXPECT_EQ(http::read_socks_greeting(bytes({5, 2, 2, 0}))->method, SocksMethod::none);
  EXPECT_EQ(http::read_socks_greeting(bytes({5, 1, 2}))->method, SocksMethod::password);
  EXPECT_EQ(http::read_socks_greeting(bytes({5, 1, 1}))->method, SocksMethod::unacceptable);
  EXPECT_EQ(http::read_socks_greeting(bytes({5, 0}))->method, SocksMethod::unacceptable);
  EXPECT_EQ(http::read_socks_greeting(bytes({4, 1, 0, 80})).error().reason, "socks-version");
}

TEST(Socks, AProxyThatWantsAPasswordCanTellWhoOffersOne) {
  EXPECT_TRUE(http::read_socks_greeting(bytes({5, 2, 2, 0}))->offers_password);
  EXPECT_FALSE(http::read_socks_greeting(bytes({5, 1, 0}))->offers_password);
  const std::string login = bytes({1, 2}) + "me" + bytes({6}) + "secret";
  ASSERT_EQ(http::read_socks_login(login), login.size());
  EXPECT_EQ(http::socks_password(login), "secret");
  EXPECT_EQ(http::socks_password(bytes({1, 0, 0})), "");
}

// Behind a message may stand the next one, or what the client already tells its server.
TEST(Socks, AMessageSaysHowLongItIsAndNothingBehindItIsRead) {
  const std::string request = named("api.example.com");
  for (std::size_t size = 0; size < request.size(); ++size) {
    EXPECT_GT(http::read_socks_request(request.substr(0, size))->needs, size) << size;
  }
  const auto whole = http::read_socks_request(request + "GET / HTTP/1.1\r\n");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->needs, request.size());
  EXPECT_EQ(whole->name, "api.example.com");
  EXPECT_EQ(whole->port, 443);
  EXPECT_EQ(http::read_socks_greeting(bytes({5, 1, 0}) + request)->needs, 3U);
}

TEST(Socks, N145NamesAreBytesUntilTheHostParserHasSeenThem) {
  EXPECT_EQ(http::read_socks_request(named(std::string_view("a\0b", 3)))->name,
            std::string_view("a\0b", 3));
  EXPECT_EQ(http::read_socks_request(named("127.0.0.1"))->kind, SocksRequest::Kind::name);
  EXPECT_EQ(http::read_socks_request(named(std::string(255, 'a')))->name.size(), 255U);
  EXPECT_EQ(http::read_socks_request(named("")).error().reason, "host");
}

TEST(Socks, AddressesOfBothFamilies) {
  const auto v4 = http::read_socks_request(bytes({5, 1, 0, 1, 93, 184, 216, 34, 0, 80}));
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->kind, SocksRequest::Kind::v4);
  EXPECT_EQ(v4->needs, 10U);
  EXPECT_EQ(v4->address[3], 34);
  EXPECT_EQ(v4->port, 80);
  const auto v6 =
      http::read_socks_request(bytes({5, 1, 0, 4}) + std::string(15, '\0') + bytes({1, 1, 187}));
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->kind, SocksRequest::Kind::v6);
  EXPECT_EQ(v6->address[15], 1);
  EXPECT_EQ(v6->port, 443);
}

TEST(Socks, OnlyConnectIsTaken) {
  struct Row {
    std::string request;
    std::string reason;
    SocksReply reply;
  };
  const Row rows[] = {
      {bytes({5, 2, 0, 1, 0, 0, 0, 0, 0, 80}), "socks-command", SocksReply::unknown_command},
      {bytes({5, 3, 0, 1, 0, 0, 0, 0, 0, 80}), "socks-command", SocksReply::unknown_command},
      {bytes({5, 1, 0, 2, 0, 0, 0, 0, 0, 80}), "socks-address", SocksReply::unknown_address},
      {bytes({5, 1, 1, 1, 0, 0, 0, 0, 0, 80}), "socks-request", SocksReply::failed},
      {bytes({5, 1, 0, 1, 1, 1, 1, 1, 0, 0}), "port", SocksReply::failed},
      {bytes({4, 1, 0, 80, 1}), "socks-version", SocksReply::failed}};
  for (const Row& row : rows) {
    const auto result = http::read_socks_request(row.request);
    ASSERT_FALSE(result) << row.reason;
    EXPECT_EQ(result.error().reason, row.reason);
    EXPECT_EQ(result.error().status, static_cast<unsigned>(row.reply));
  }
}

TEST(Socks, N146ALoginOfAnyLengthIsCountedAndForgotten) {
  EXPECT_EQ(*http::read_socks_login(bytes({1, 0, 0})), 3U);
  EXPECT_EQ(*http::read_socks_login(bytes({1, 3}) + "bob" + bytes({0})), 6U);
  const std::string longest = bytes({1, 255}) + std::string(255, 'u') + bytes({255});
  EXPECT_EQ(*http::read_socks_login(longest), 513U);
  EXPECT_EQ(*http::read_socks_login(longest + std::string(255, 'p') + "more"), 513U);
  for (std::size_t size = 0; size < longest.size(); ++size) {
    EXPECT_GT(*http::read_socks_login(longest.substr(0, size)), size) << size;
  }
  EXPECT_EQ(http::read_socks_login(bytes({5, 0, 0})).error().reason, "socks-login");
}

TEST(Socks, Answers) {
  EXPECT_EQ(http::socks_choice(SocksMethod::unacceptable), bytes({5, 255}));
  EXPECT_EQ(http::socks_login_taken(), bytes({1, 0}));
  EXPECT_EQ(http::socks_reply(SocksReply::not_allowed), bytes({5, 2, 0, 1, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
