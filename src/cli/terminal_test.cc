// -t: what it asks for, and the keys that leave a run.
#include "cli/terminal.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

struct Heard {
  bool left;
  std::string passed;
  bool operator==(const Heard&) const = default;
};

// The keys in one read each.
Heard hear_all(const std::vector<std::string>& reads) {
  LeavingKeys keys;
  Heard heard{false, {}};
  for (std::string typed : reads) {
    heard.left = keys.heard(typed);
    heard.passed += typed;
    if (heard.left) break;
  }
  return heard;
}

TEST(LeavingKeys, CtrlPCtrlQLeaves) {
  EXPECT_EQ(hear_all({"ab\x10\x11rest"}), (Heard{true, "ab"}));
  EXPECT_EQ(hear_all({"a\x10", "\x11"}), (Heard{true, "a"}));
  EXPECT_EQ(hear_all({"\x10\x10\x11"}), (Heard{true, "\x10"}));
}

TEST(LeavingKeys, AllElseIsPassedOnAsItIs) {
  EXPECT_EQ(hear_all({"\x11\x03"}), (Heard{false, "\x11\x03"}));
  EXPECT_EQ(hear_all({"\x10", "x"}), (Heard{false, "\x10x"}));
  EXPECT_EQ(hear_all({"\x10x\x11"}), (Heard{false, "\x10x\x11"}));
  EXPECT_EQ(hear_all({"", "a"}), (Heard{false, "a"}));
}

std::string kind_of(const std::map<std::string, std::string>& host,
                    std::map<std::string, std::string> inside) {
  World world;
  world.env = host;
  pass_terminal_kind(world, inside);
  return inside["TERM"];
}

TEST(TerminalKind, IsTheCallersUnlessOneIsSet) {
  EXPECT_EQ(kind_of({{"TERM", "screen-256color"}}, {}), "screen-256color");
  EXPECT_EQ(kind_of({{"TERM", "screen"}}, {{"TERM", "dumb"}}), "dumb");
  EXPECT_EQ(kind_of({}, {}), "xterm");
  EXPECT_EQ(kind_of({{"TERM", "../../x"}}, {}), "xterm");
  EXPECT_EQ(kind_of({{"TERM", std::string(65, 'x')}}, {}), "xterm");
}

TEST(WantedTerminal, NeedsOneOnStandardInput) {
  Parsed parsed;
  World world;
  EXPECT_EQ(*wanted_terminal(world, parsed, Seat::needed), std::nullopt);
  parsed.flags.emplace_back("--tty", "");
  const auto refused = wanted_terminal(world, parsed, Seat::needed);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, base::Kind::bad_input);
  EXPECT_TRUE(*wanted_terminal(world, parsed, Seat::optional));
}

}  // namespace
}  // namespace cli
