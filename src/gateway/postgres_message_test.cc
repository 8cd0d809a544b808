// Starts and messages of PostgreSQL: what is read, what is refused, and that writing gives it back.
#include "gateway/postgres_message.h"

#include <gtest/gtest.h>

namespace gateway::postgres {
namespace {

std::string bytes(std::initializer_list<unsigned char> values) {
  return {values.begin(), values.end()};
}

const std::string kVersion = bytes({0, 3, 0, 0});

std::string session(std::string_view parameters) {
  return kVersion + std::string(parameters);
}

TEST(PostgresMessage, StartsAreReadAndWritten) {
  using namespace std::string_literals;
  const std::pair<std::string, Startup> rows[] = {
      {session("user\0app\0database\0some\0\0"s),
       {.kind = Startup::Kind::session,
        .key = {},
        .parameters = {{"user", "app"}, {"database", "some"}}}},
      {session("options\0\0user\0a\0\0"s),
       {.kind = Startup::Kind::session, .key = {}, .parameters = {{"options", ""}, {"user", "a"}}}},
      {bytes({4, 0xd2, 0x16, 0x2f}), {.kind = Startup::Kind::tls, .key = {}, .parameters = {}}},
      {bytes({4, 0xd2, 0x16, 0x30}), {.kind = Startup::Kind::gss, .key = {}, .parameters = {}}},
      {bytes({4, 0xd2, 0x16, 0x2e, 0, 0, 0, 7, 1, 2, 3, 4}),
       {.kind = Startup::Kind::cancel, .key = bytes({0, 0, 0, 7, 1, 2, 3, 4}), .parameters = {}}}};
  for (const auto& [body, startup] : rows) {
    const auto parsed = parse_startup(body);
    ASSERT_TRUE(parsed) << parsed.error().line();
    EXPECT_EQ(*parsed, startup);
    const std::string written = write_startup(startup);
    EXPECT_EQ(written.substr(4), body);
    EXPECT_EQ(length_of(written), written.size());
  }
}

TEST(PostgresMessage, OtherStartsAreRefused) {
  using namespace std::string_literals;
  const std::string rows[] = {
      "",
      bytes({0, 3, 0}),
      bytes({0, 2, 0, 0}) + "user\0a\0\0"s,
      bytes({0, 3, 0, 2}) + "user\0a\0\0"s,
      session(""),
      session("\0"s),
      session("user\0a"),
      session("user\0a\0"s),
      session("user"),
      session("user\0\0\0"s),
      session("database\0a\0\0"s),
      session("user\0a\0user\0b\0\0"s),
      session("user\0a\0\0more"s),
      session("user\0"s + std::string(kMostStartup, 'a') + "\0\0"s),
      bytes({4, 0xd2, 0x16, 0x2f, 0}),
      bytes({4, 0xd2, 0x16, 0x30, 0}),
      bytes({4, 0xd2, 0x16, 0x2e, 0, 0, 0, 7}),
      "\x16\x03\x01\x02",  // a handshake of TLS
      "GET / HTTP/1.1",
  };
  for (const std::string& row : rows) EXPECT_FALSE(parse_startup(row)) << row;
}

TEST(PostgresMessage, WordsOfAuthentication) {
  using namespace std::string_literals;
  const std::string written = write_authentication(Authentication::kSasl, "SCRAM-SHA-256\0\0"s);
  EXPECT_EQ(written[0], 'R');
  EXPECT_EQ(length_of(written.substr(1)), written.size() - 1);
  const auto word = parse_authentication(written.substr(5));
  ASSERT_TRUE(word);
  EXPECT_EQ(word->kind, Authentication::kSasl);
  EXPECT_EQ(mechanisms(word->data), std::vector<std::string>{"SCRAM-SHA-256"});
  EXPECT_EQ(mechanisms("A\0B\0\0"s), (std::vector<std::string>{"A", "B"}));
  EXPECT_FALSE(mechanisms("A\0"s));
  EXPECT_FALSE(mechanisms("A"));
  EXPECT_FALSE(parse_authentication("\0\0\0"s));
  EXPECT_EQ(write_sasl_initial("M", "data"),
            "p\0\0\0\x0eM\0\0\0\0\x04"
            "data"s);
  EXPECT_TRUE(fatal("28000", "no").ends_with("C28000\0Mno\0\0"s));
}

}  // namespace
}  // namespace gateway::postgres
