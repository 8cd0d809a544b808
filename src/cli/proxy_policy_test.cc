// Which keys a proxy says that it does not carry out.
#include "cli/proxy_policy.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

policy::Effective parsed(std::string_view text, std::vector<policy::Override> overrides = {}) {
  auto got = policy::parse(text, "p.toml", overrides, {.cpus_milli = 4000, .memory = 8ULL << 30});
  EXPECT_TRUE(got.has_value()) << (got ? "" : got.error().line());
  return got.value_or(policy::Effective{});
}

TEST(ProxyPolicy, WhatOnlyASandboxCanHoldIsNamedWithItsPlace) {
  const auto left =
      left_to_others(parsed("version = 1\n[isolation]\ntier = \"gvisor\"\naccept = "
                            "[\"shared-kernel\"]\n[limits]\nmemory = "
                            "\"1GiB\"\n[filesystem]\nworkdir = { mode = \"empty\" "
                            "}\n[alerts]\nrequest_spike = \"freeze\"\n"
                            "blocked_range = \"cut-network\"\n",
                            {{.kind = policy::OverrideKind::timeout, .text = "90s"}}));
  ASSERT_TRUE(left.has_value());
  std::vector<std::string> keys;
  for (const LeftKey& one : *left) keys.push_back(one.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"alerts.request_spike", "filesystem.workdir",
                                            "isolation.tier", "limits.memory", "limits.wall"}));
  const std::string text = left_text(*left);
  EXPECT_TRUE(text.contains("isolation.tier (p.toml:3:")) << text;
  EXPECT_TRUE(text.contains("alerts.request_spike = freeze, which cuts the network")) << text;
}

TEST(ProxyPolicy, DefaultsAndTheNetworkAreNotNamed) {
  const auto left =
      left_to_others(parsed("version = 1\ntask = \"t\"\n[network]\nmode = "
                            "\"audit\"\n[[egress]]\nhost = \"a.example.com\"\n"));
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left_text(*left), "");
}

TEST(ProxyPolicy, ADemandThatNobodyOutsideCanMeetIsRefused) {
  policy::Effective effective = parsed("version = 1\n");
  effective.policy.audit.exec = policy::Need::required;
  effective.origins["audit.exec"] = "p.toml:3:8";
  const auto left = left_to_others(effective);
  ASSERT_FALSE(left.has_value());
  EXPECT_EQ(left.error().kind, base::Kind::bad_input);
  EXPECT_TRUE(left.error().line().starts_with("p.toml:3:8")) << left.error().line();
}

}  // namespace
}  // namespace cli
