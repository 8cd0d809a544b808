// Tests of the flag parser and of the table of subcommands.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "cli/cli_test.h"

namespace {

using cli_test::command;
using Words = std::vector<std::string>;

cli::Parsed parsed(std::string_view name, const Words& args) {
  auto result = cli::parse_flags(command(name), args);
  EXPECT_TRUE(result) << result.error().line();
  return result.value_or(cli::Parsed());
}

TEST(Flags, RunTakesItsCommandAfterTwoDashes) {
  const auto got = parsed("run", {"--timeout", "1s", "--", "sleep", "--help", "--", "-x"});
  EXPECT_EQ(got.value("--timeout"), "1s");
  EXPECT_EQ(got.rest, (Words{"sleep", "--help", "--", "-x"}));
  EXPECT_TRUE(got.dashes);
  EXPECT_EQ(got.words, Words{});
}

TEST(Flags, AllAfterAFileBelongsToIt) {
  const auto got = parsed("run", {"--quiet", "x.py", "--policy", "--", "-t"});
  EXPECT_TRUE(got.has("--quiet"));
  EXPECT_FALSE(got.has("--policy"));
  EXPECT_EQ(got.words, (Words{"x.py", "--policy", "--", "-t"}));
  EXPECT_FALSE(got.dashes);
}

TEST(Flags, ValuesComeInEveryForm) {
  const auto got =
      parsed("run", {"--env", "A=1", "--env=B=2", "--set=limits.wall=1s", "--in", "", "-i", "x"});
  EXPECT_EQ(got.values("--env"), (Words{"A=1", "B=2"}));
  EXPECT_EQ(got.value("--set"), "limits.wall=1s");
  EXPECT_EQ(got.value("--in"), "");
  EXPECT_TRUE(got.has("--interactive"));
}

TEST(Flags, TheOrderOfPolicyFlagsIsKept) {
  const auto got = parsed("run", {"--set", "a=1", "--allow", "x.test", "--set", "a=2", "--", "x"});
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"--set", "a=1"}, {"--allow", "x.test"}, {"--set", "a=2"}};
  EXPECT_EQ(got.flags, expected);
}

struct Wrong {
  Words args;
  std::string hint;
};
TEST(Flags, WrongOnesNameWhatWouldBeRight) {
  const std::array wrong = {
      Wrong{{"--polcy", "x", "--", "true"}, "did you mean --policy"},
      Wrong{{"--frobnicate"}, "unknown flag `--frobnicate`"},
      Wrong{{"-x"}, "unknown flag `-x`"},
      Wrong{{"-ix"}, "unknown flag `-x`"},
      Wrong{{"--policy"}, "`--policy` has no value; expected --policy FILE"},
      Wrong{{"--quiet=yes"}, "`--quiet` takes no value"},
      Wrong{{"--image", "x"}, "--image: not carried out yet"},
      Wrong{{"--workdir=x"}, "--workdir: not carried out yet"},
      Wrong{{"--\x1b[2J"}, "\\x1b[2J"},
  };
  for (const Wrong& given : wrong) {
    const auto got = cli::parse_flags(command("run"), given.args);
    ASSERT_FALSE(got) << given.args[0];
    EXPECT_NE(got.error().line().find(given.hint), std::string::npos) << got.error().line();
  }
}

// Every subcommand of the contract is known.
TEST(Commands, TheTableIsWhole) {
  const Words names = {"run",
                       "start",
                       "exec",
                       "attach",
                       "ps",
                       "kill",
                       "rm",
                       "gc",
                       "cp",
                       "publish",
                       "diff",
                       "apply",
                       "discard",
                       "policy show",
                       "policy apply",
                       "policy suggest",
                       "policy schema",
                       "check",
                       "why",
                       "doctor",
                       "attack",
                       "log",
                       "log show",
                       "log verify",
                       "report",
                       "credential ls",
                       "credential show",
                       "credential revoke",
                       "credential test",
                       "image import",
                       "image ls",
                       "image rm",
                       "image commit",
                       "image warm",
                       "proxy",
                       "version"};
  for (const std::string& name : names) {
    const bool known = std::ranges::any_of(
        cli::commands(), [&](const cli::Command& entry) { return entry.name == name; });
    EXPECT_TRUE(known) << name;
  }
  EXPECT_EQ(cli::commands().size(), names.size());
}

TEST(Commands, WhatRunsACommandFailsWith125) {
  for (const cli::Command& entry : cli::commands()) {
    const bool runs = entry.name == "run" || entry.name == "start" || entry.name == "exec" ||
                      entry.name == "attach";
    EXPECT_EQ(entry.usage_status, runs ? 125 : 2) << entry.name;
  }
}

TEST(Commands, EachHasHelpAndNoFlagTwice) {
  for (const cli::Command& entry : cli::commands()) {
    EXPECT_TRUE(std::ranges::count(entry.flags, "--help", &cli::Flag::name) == 1) << entry.name;
    for (const cli::Flag& flag : entry.flags) {
      EXPECT_EQ(std::ranges::count(entry.flags, flag.name, &cli::Flag::name), 1) << flag.name;
      if (flag.letter == 0) continue;
      EXPECT_EQ(std::ranges::count(entry.flags, flag.letter, &cli::Flag::letter), 1) << flag.name;
    }
  }
}

TEST(Commands, RunKnowsEveryFlagOfTheContract) {
  const std::array<std::string_view, 18> flags = {
      "--policy", "--tier", "--set",    "--image",  "--workdir", "--in",
      "--out",    "--ro",   "--env",    "--allow",  "--timeout", "--strict",
      "--tty",    "--name", "--detach", "--report", "--quiet",   "--interactive"};
  for (const std::string_view flag : flags) {
    EXPECT_TRUE(std::ranges::count(command("run").flags, flag, &cli::Flag::name) == 1) << flag;
  }
}

}  // namespace
