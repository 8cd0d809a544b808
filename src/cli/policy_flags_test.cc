// Tests of how flags become a policy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "cli/cli_test.h"

namespace {

using cli_test::Folder;
using cli_test::Stage;
using Words = std::vector<std::string>;

base::Result<policy::Effective> load(const Stage& stage, const Words& args) {
  const auto parsed = cli::parse_flags(cli_test::command("run"), args);
  EXPECT_TRUE(parsed) << parsed.error().line();
  return cli::load_policy(stage.world, *parsed, {.cpus_milli = 4000, .memory = 8ULL << 30});
}

TEST(PolicyFlags, WithoutAnyTheDefaultsHold) {
  const Stage stage;
  const auto got = load(stage, {"--", "x"});
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(got->policy, policy::defaults({.cpus_milli = 4000, .memory = 8ULL << 30}));
}

TEST(PolicyFlags, EachShapesItsOwnPart) {
  const Stage stage;
  const Folder host;
  const auto got =
      load(stage, {"--tier", "container", "--timeout=90s", "--set", "limits.processes=7", "--env",
                   "A=1", "--env", "HOME", "--allow", "a.test", "--ro", host.path()});
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(got->policy.isolation.tier, policy::Tier::container);
  EXPECT_EQ(got->policy.limits.wall_ms, 90'000U);
  EXPECT_EQ(got->policy.limits.processes, 7U);
  EXPECT_EQ(got->policy.environment.set.at("A"), "1");
  EXPECT_EQ(got->policy.environment.pass, Words{"HOME"});
  ASSERT_EQ(got->policy.egress.size(), 1U);
  EXPECT_EQ(got->policy.egress[0].host, "a.test");
  EXPECT_EQ(got->policy.filesystem.read_only, Words{host.path()});
}

TEST(PolicyFlags, LaterOnesAndThoseAfterTheFileCount) {
  const Stage stage;
  const Folder host;
  const std::string file = host.write("p.toml", "version = 1\n[limits]\nwall = \"5s\"\n");
  EXPECT_EQ(load(stage, {"--policy", file})->policy.limits.wall_ms, 5000U);
  EXPECT_EQ(load(stage, {"--timeout", "1s", "--policy", file})->policy.limits.wall_ms, 1000U);
  EXPECT_EQ(load(stage, {"--timeout", "1s", "--set", "limits.wall=2s"})->policy.limits.wall_ms,
            2000U);
}

// F67, F68: what is brought in is the place that a link leads to.
TEST(PolicyFlags, ReadOnlyPathsAreResolved) {
  const Stage stage;
  const Folder host;
  host.write("real/x", "1");
  ASSERT_EQ(::symlink("real", host.at("link").c_str()), 0);
  EXPECT_EQ(load(stage, {"--ro", host.at("link/../real")})->policy.filesystem.read_only,
            Words{host.at("real")});
  EXPECT_EQ(load(stage, {"--ro", host.at("link")})->policy.filesystem.read_only,
            Words{host.at("real")});
}

TEST(PolicyFlags, WrongOnesAreBadInputWithTheirName) {
  const Stage stage;
  const Folder host;
  struct Wrong {
    Words args;
    std::string hint;
  };
  const std::array wrong = {
      Wrong{{"--policy", host.at("none")}, "--policy " + host.at("none")},
      Wrong{{"--policy", host.path()}, "--policy"},
      Wrong{{"--ro", host.at("none")}, "--ro " + host.at("none")},
      Wrong{{"--tier", "contaner"}, "container"},
      Wrong{{"--timeout", "soon"}, "soon"},
      Wrong{{"--set", "limits.memroy=1GiB"}, "memory"},
      Wrong{{"--set", "filesystem.read_only=[\"/none\"]"}, "/none"},
  };
  for (const Wrong& given : wrong) {
    const auto got = load(stage, given.args);
    ASSERT_FALSE(got) << given.args[1];
    EXPECT_EQ(got.error().kind, base::Kind::bad_input) << given.args[1];
    EXPECT_NE(got.error().line().find(given.hint), std::string::npos) << got.error().line();
  }
}

// F55: a secret of the caller's does not slip in by its name.
TEST(PolicyFlags, PassedValuesThatLookLikeCredentialsAreRefused) {
  Stage stage;
  const std::string value = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  stage.world.env = {{"TOKEN", value}, {"LANG", "C"}};
  policy::Policy policy;
  policy.environment.pass = {"LANG", "TOKEN", "UNSET"};
  const auto refused = cli::passed_environment(stage.world, policy);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().line().find("[[credential]]"), std::string::npos);
  EXPECT_FALSE(refused.error().line().contains(value));
  policy.environment.plain = {"TOKEN"};
  const auto passed = cli::passed_environment(stage.world, policy);
  ASSERT_TRUE(passed);
  EXPECT_EQ(*passed, stage.world.env);
}

}  // namespace
