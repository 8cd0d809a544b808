// Tests of module base.
#include "base/base.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

namespace {

enum class Colour { red, green, last_ = green };
struct Inner {
  std::string name;
  std::vector<std::uint16_t> ports;
  bool operator==(const Inner&) const = default;
  template <class Wire>
  void fields(Wire& wire) {
    wire(name, ports);
  }
};
struct Outer {
  Colour colour = Colour::red;
  std::optional<Inner> inner;
  std::map<std::string, std::string> words;
  std::variant<Inner, std::string> either;
  bool operator==(const Outer&) const = default;
  template <class Wire>
  void fields(Wire& wire) {
    wire(colour, inner, words, either);
  }
};

Outer sample() {
  return {Colour::green, Inner{"a", {1, 65535}}, {{"k", "v"}}, std::string("word")};
}

TEST(Wire, RoundTrips) {
  const auto back = base::decode<Outer>(base::encode(sample()), "outer");
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, sample());
}

TEST(Wire, EveryCutIsRefused) {
  const std::string bytes = base::encode(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(base::decode<Outer>(bytes.substr(0, size), "outer")) << size;
  }
  EXPECT_FALSE(base::decode<Outer>(bytes + "x", "outer"));
}

TEST(Wire, UnknownEnumAndHugeCountAreRefused) {
  std::string bytes = base::encode(sample());
  bytes[0] = 2;
  EXPECT_FALSE(base::decode<Outer>(bytes, "outer"));
  EXPECT_FALSE(base::decode<std::vector<std::string>>(std::string(8, '\xff'), "list"));
}

TEST(Text, APathIsWithinItsFolderAndNotWithinOneOfALikeName) {
  EXPECT_TRUE(base::is_within("/a/b", "/a"));
  EXPECT_TRUE(base::is_within("/a", "/a"));
  EXPECT_TRUE(base::is_within("/a", "/"));
  EXPECT_TRUE(base::is_within("d/f", "d"));
  EXPECT_FALSE(base::is_within("/ab", "/a"));
  EXPECT_FALSE(base::is_within("/a", "/a/b"));
}

TEST(Text, CapitalsAndControlCharactersAreThoseOfAscii) {
  EXPECT_EQ(base::to_upper("get-\xc3\xa9z"), "GET-\xc3\xa9Z");
  EXPECT_TRUE(base::has_control("a\x1f"));
  EXPECT_TRUE(base::has_control("\x7f"));
  EXPECT_FALSE(base::has_control(" ~\xc2\x80"));
}

TEST(Text, ClosestFindsASlipAndNothingFarAway) {
  static constexpr std::array<std::string_view, 3> kKeys = {"memory", "processes", "disk"};
  EXPECT_EQ(base::closest("memroy", kKeys), "memory");
  EXPECT_EQ(base::closest("zzzzzzzz", kKeys), "");
}

TEST(Text, NumbersAreStrict) {
  EXPECT_EQ(base::parse_number("18446744073709551615"), 18446744073709551615ULL);
  EXPECT_FALSE(base::parse_number("18446744073709551616"));
  EXPECT_FALSE(base::parse_number("01"));
  EXPECT_FALSE(base::parse_number("+1"));
  EXPECT_FALSE(base::parse_number(""));
}

TEST(Text, Glob) {
  EXPECT_TRUE(base::glob_matches("**/.env", "a/b/.env"));
  EXPECT_TRUE(base::glob_matches("/v1/*", "/v1/me"));
  EXPECT_FALSE(base::glob_matches("/v1/*", "/v1/me/x"));
  EXPECT_TRUE(base::glob_matches("/v1/**", "/v1/me/x"));
  EXPECT_TRUE(base::glob_matches("id_rsa*", "id_rsa.pub"));
  EXPECT_FALSE(base::glob_matches("a?c", "a/c"));
}

TEST(Text, PrintableNeutralisesTerminalControls) {
  EXPECT_EQ(base::printable("a\x1b]52;c\x07"), "a\\x1b]52;c\\x07");
  EXPECT_EQ(base::printable("\xe2\x80\xae"), "\\u{202e}");
  // Tag characters say what no terminal shows.
  EXPECT_EQ(base::printable("a\xf3\xa0\x80\x81\xf3\xa0\x81\xbf"), "a\\u{e0001}\\u{e007f}");
  EXPECT_EQ(base::printable("\xf3\xa0\x84\x80"), "\xf3\xa0\x84\x80");
  EXPECT_EQ(base::printable("\xff"), "\\xff");
  EXPECT_EQ(base::printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(Text, Base64IsStrict) {
  EXPECT_EQ(base::base64("user:pw"), "dXNlcjpwdw==");
  EXPECT_EQ(base::from_base64("dXNlcjpwdw=="), "user:pw");
  EXPECT_FALSE(base::from_base64("dXNlcjpwdw"));
  EXPECT_FALSE(base::from_base64("dXNl cjpwdw=="));
}

TEST(Error, LineNamesWhereWhatAndWhatWouldBeRight) {
  const auto error =
      base::bad_input("p.toml:3:1", "unknown key `memroy`", "expected one of …").error();
  EXPECT_EQ(error.line(), "p.toml:3:1: unknown key `memroy`; expected one of …");
  EXPECT_EQ(base::system_error("mount /x", 1).error().within("start sandbox").line(),
            "start sandbox: mount /x: EPERM (Operation not permitted)");
}

TEST(Json, JsonStringEscapesWhatCouldBreakALine) {
  EXPECT_EQ(base::json_string("a\"\\\n\t\x1b\x7f"), "\"a\\\"\\\\\\n\\t\\u001b\\u007f\"");
  EXPECT_EQ(base::json_string("\xff"), "\"\\ufffd\\u00ff\"");
  EXPECT_EQ(base::JsonObject().add("n", 5).add("b", true).add("s", "x").text(),
            "{\"n\":5,\"b\":true,\"s\":\"x\"}");
}

TEST(Secret, MovesAndReveals) {
  base::Secret first = *base::Secret::hold("token");
  base::Secret second = std::move(first);
  EXPECT_EQ(second.reveal(), "token");
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): the moved-from state is the test
}

// What the kernel says of the page: VmFlags "lo" is locked, "dd" is left out of core dumps.
TEST(Secret, IsLockedAndNotDumped) {
  const base::Secret secret = *base::Secret::hold("token");
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(secret.reveal().data());
  bool here = false;
  std::string flags;
  for (std::string line; flags.empty() && std::getline(maps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) here = from <= at && at < to;
    if (here && line.starts_with("VmFlags:")) flags = line + " ";
  }
  EXPECT_TRUE(flags.contains(" lo ")) << flags;
  EXPECT_TRUE(flags.contains(" dd ")) << flags;
}

// Where no more memory may be locked there is an error that says what to raise, and no secret.
TEST(Secret, IsNotHeldInMemoryThatCannotBeLocked) {
  const auto child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none = {0, 0};
    // The limit does not hold for CAP_IPC_LOCK, which goes with the user id of root.
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0) ::_exit(1);
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    const auto secret = base::Secret::hold("token");
    if (secret) ::_exit(3);
    ::_exit(secret.error().kind == base::Kind::missing &&
                    secret.error().line().contains("RLIMIT_MEMLOCK")
                ? 0
                : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
