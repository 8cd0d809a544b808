// Presets in the tree: what they become, what may stand beside them, what is refused.
#include "policy/presets.h"

#include <gtest/gtest.h>

#include "policy/testing.h"

namespace policy {
namespace {

base::Result<PresetRules> source(std::string_view name) {
  using enum PresetRules::Kind;
  if (name == "one")
    return PresetRules{"[[egress]]\nhost = \"a.test\"\nmethods = [\"GET\"]\n", "/etc/one.toml"};
  if (name == "two") {
    return PresetRules{
        "[[egress]]\nhost = \"b.test\"\n[[egress]]\nhost = \"c.test\"\n[environment]\nset = { X = "
        "\"from tool\", Y = \"from tool\" }\n",
        "/etc/tool.conf", tool};
  }
  if (name == "settings")
    return PresetRules{"[limits]\nmemory = \"64GiB\"\n", "/etc/settings.toml"};
  if (name == "variables")
    return PresetRules{
        "[[egress]]\nhost = \"a.test\"\n[environment]\nset = { LD_PRELOAD = \"x\" }\n",
        "/etc/v.toml"};
  if (name == "nested") return PresetRules{"[[egress]]\npreset = \"one\"\n", "/etc/nested.toml"};
  if (name == "empty") return PresetRules{"", "/etc/empty.toml"};
  if (name == "bad") return PresetRules{"[[egress]]\nhost = \"1.2.3.4\"\n", "/etc/bad.toml"};
  return base::fail(base::Kind::not_found, "preset", "none of that name", "expected one");
}

base::Result<Effective> with(const std::string& text) {
  return parse(text, "policy", {}, {}, source);
}

TEST(Presets, AreReplacedByTheirRules) {
  const auto got = with(
      "[[egress]]\npreset = \"two\"\n[[egress]]\nhost = \"z.test\"\n[[egress]]\nname = "
      "\"mirror\"\npreset = \"one\"\naddresses = [\"10.1.0.0/16\"]\n");
  ASSERT_TRUE(got) << got.error().line();
  const auto& egress = got->policy.egress;
  ASSERT_EQ(egress.size(), 4U);
  EXPECT_EQ(egress[0].name, "two");
  EXPECT_EQ(egress[0].host, "b.test");
  EXPECT_EQ(egress[1].name, "two-2");
  EXPECT_EQ(egress[1].host, "c.test");
  EXPECT_EQ(egress[2].host, "z.test");
  EXPECT_EQ(egress[3].name, "mirror");
  EXPECT_TRUE(egress[3].inspects);
  EXPECT_EQ(egress[3].addresses, std::vector<std::string>{"10.1.0.0/16"});
  EXPECT_EQ(got->origins.at("egress[0].host"), "preset two: /etc/tool.conf");
  EXPECT_EQ(got->origins.at("egress[3].host"), "/etc/one.toml:2:8");
  // What is shown is the rules, and reads back as the same policy.
  const auto again = with(show(*got));
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ(again->policy, got->policy);
}

TEST(Presets, VariablesOfAToolGiveWay) {
  const auto got = with("[environment]\nset = { X = \"mine\" }\n[[egress]]\npreset = \"two\"\n");
  ASSERT_TRUE(got) << got.error().line();
  EXPECT_EQ(got->policy.environment.set.at("X"), "mine");
  EXPECT_EQ(got->policy.environment.set.at("Y"), "from tool");
  const auto passed = with("[environment]\npass = [\"X\"]\n[[egress]]\npreset = \"two\"\n");
  ASSERT_TRUE(passed) << passed.error().line();
  EXPECT_FALSE(passed->policy.environment.set.contains("X"));
}

TEST(Presets, TheCommandLineNamesThemAsWell) {
  const Override change[] = {{OverrideKind::allow, "preset:one"}};
  const auto got = parse("", "policy", change, {}, source);
  ASSERT_TRUE(got) << got.error().line();
  ASSERT_EQ(got->policy.egress.size(), 1U);
  EXPECT_EQ(got->policy.egress[0].host, "a.test");
}

// A preset opens what its [[egress]] tables say and nothing else.
TEST(Presets, WhatTheyMayNotSay) {
  const std::pair<std::string, std::string> rows[] = {
      {"preset = \"settings\"", "/etc/settings.toml:1:2: limits; expected tables [[egress]] alone"},
      {"preset = \"variables\"", "environment; expected tables [[egress]] alone"},
      {"preset = \"nested\"", "a preset within a preset"},
      {"preset = \"empty\"", "no [[egress]]"},
      {"preset = \"bad\"", "/etc/bad.toml:2:8: egress[0].host"},
      {"preset = \"nothing\"", "policy:2:10: preset: none of that name"},
      {"preset = \"../one\"", "policy:2:10: egress.preset: found \"../one\""},
      {"preset = 7", "policy:2:10: egress.preset: found the number 7"},
      {"preset = \"one\"\nmethods = [\"POST\"]", "policy:3:1: methods beside preset"},
      {"preset = \"one\"\nhost = \"a.test\"", "host beside preset"}};
  for (const auto& [text, says] : rows) {
    const auto got = with("[[egress]]\n" + text + "\n");
    ASSERT_FALSE(got) << text;
    EXPECT_NE(got.error().line().find(says), std::string::npos) << got.error().line();
  }
}

TEST(Presets, WithoutASourceTheyAreRefused) {
  EXPECT_FALSE(testing::read("[[egress]]\npreset = \"one\"\n"));
}

}  // namespace
}  // namespace policy
