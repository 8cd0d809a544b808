// What may change in a running sandbox, and what is refused by its name.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/parts.h"
#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::Plan;
using policy::Policy;

Plan made(const Policy& policy) {
  auto plan =
      plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters);
  if (!plan) ADD_FAILURE() << plan.error().line();
  return plan ? *plan : Plan{};
}

Policy tunnels() {
  Policy policy;
  policy.egress = {plan::testing::rule("a", "a.test", {443})};
  return policy;
}

const plan::Capture& capture_of(const Plan& plan) {
  return *plan::step_of<plan::Capture>(plan);
}

TEST(Change, RulesAndWhatIsSteeredFollowWithTheNextRevision) {
  const Plan before = made(tunnels());
  Policy wanted = plan::in_force(before);
  wanted.egress = {plan::testing::rule("b", "b.test", {8443})};
  wanted.network.fallback = policy::NetworkDefault::deny;
  wanted.alerts.blocked_range = policy::Action::kill;
  const auto after = plan::change(before, wanted);
  ASSERT_TRUE(after) << after.error().line();
  EXPECT_EQ(after->policy.revision, 2U);
  EXPECT_EQ(after->policy.egress, wanted.egress);
  EXPECT_EQ(after->policy.alerts, wanted.alerts);
  EXPECT_EQ(after->policy_sha256, base::sha256(policy::to_json(wanted)));
  EXPECT_EQ(capture_of(*after).steered, plan::capture_for(wanted).steered);
  EXPECT_NE(capture_of(*after).steered, capture_of(before).steered);
  wanted.network.fallback = policy::NetworkDefault::open_public;
  EXPECT_TRUE(capture_of(*plan::change(*after, wanted)).steer_public);
  EXPECT_EQ(plan::change(*after, wanted)->policy.revision, 3U);
}

TEST(Change, WhatCannotChangeIsNamed) {
  struct Row {
    const char* key;
    std::function<void(Policy&)> change;
  };
  const Row rows[] = {
      {"task", [](Policy& p) { p.task = "other"; }},
      {"code", [](Policy& p) { p.code = policy::Code::reviewed; }},
      {"isolation.tier", [](Policy& p) { p.isolation.tier = policy::Tier::microvm; }},
      {"isolation.seccomp", [](Policy& p) { p.isolation.seccomp = policy::SeccompProfile::debug; }},
      {"filesystem.read_only", [](Policy& p) { p.filesystem.read_only = {"/opt"}; }},
      {"environment.set", [](Policy& p) { p.environment.set["A"] = "b"; }},
      {"limits.memory", [](Policy& p) { p.limits.memory = 1ULL << 30; }},
      {"limits.disk", [](Policy& p) { p.limits.disk = 1ULL << 30; }},
      {"limits.wall", [](Policy& p) { p.limits.wall_ms = 1000; }},
      {"network.resolvers", [](Policy& p) { p.network.resolvers = {"192.0.2.1"}; }},
      {"network.ca", [](Policy& p) { p.network.ca = {"/etc/ca.pem"}; }},
      {"network.upstream_proxy", [](Policy& p) { p.network.upstream_proxy.url = "http://p:1"; }},
      {"audit.journal", [](Policy& p) { p.audit.journal = policy::Need::best; }},
      {"credential[0]",
       [](Policy& p) { p.credentials = {plan::testing::credential("new", "a.test")}; }},
      {"egress[0]",
       [](Policy& p) { p.egress = {plan::testing::inspected("a", "a.test", {"GET"}, {})}; }},
  };
  const Plan before = made(tunnels());
  for (const Row& row : rows) {
    Policy wanted = plan::in_force(before);
    row.change(wanted);
    const auto after = plan::change(before, wanted);
    ASSERT_FALSE(after) << row.key;
    EXPECT_EQ(after.error().where, row.key);
    EXPECT_EQ(after.error().kind, base::Kind::bad_input) << row.key;
  }
}

TEST(Change, LimitsThatWereFittedToTheHostMayBeWrittenAgain) {
  plan::HostFacts host = plan::testing::host();
  host.most_files = 1024;
  Policy policy = tunnels();
  policy.limits.files = 65536;
  const auto before = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
  ASSERT_TRUE(before);
  EXPECT_EQ(before->policy.limits.files, 1024U);
  EXPECT_TRUE(plan::change(*before, policy));
  policy.limits.files = 2048;
  EXPECT_FALSE(plan::change(*before, policy));
}

TEST(Change, BindingsReachElsewhereAndAreRetiredForGood) {
  Policy policy = tunnels();
  policy.egress = {plan::testing::rule("a", "a.test", {443}),
                   plan::testing::rule("b", "b.test", {443})};
  policy.credentials = {plan::testing::credential("one", "a.test"),
                        plan::testing::credential("two", "b.test")};
  policy.credentials[1].env = {{"OTHER_KEY", "secret"}};
  const Plan first = made(policy);
  Policy wanted = plan::in_force(first);
  wanted.credentials[0].paths = {"/v2/**"};
  wanted.credentials[0].hosts = {"b.test"};
  wanted.credentials.pop_back();
  const auto second = plan::change(first, wanted);
  ASSERT_TRUE(second) << second.error().line();
  EXPECT_EQ(second->retired, std::vector<std::string>{"two"});
  ASSERT_EQ(second->policy.credentials.size(), 2U) << "the places of the others would shift";
  EXPECT_EQ(second->policy.credentials[0], wanted.credentials[0]);
  EXPECT_EQ(plan::in_force(*second).credentials, wanted.credentials);
  EXPECT_EQ(second->placeholders, first.placeholders);
  const auto again = plan::change(*second, plan::in_force(first));
  ASSERT_FALSE(again) << "what was revoked comes back";
  EXPECT_EQ(again.error().where, "credential[1]");

  Plan minting = first;
  minting.policy.credentials[0].source.mint.kind = policy::MintKind::last_;
  wanted.credentials[0].source = minting.policy.credentials[0].source;
  EXPECT_FALSE(plan::change(minting, wanted)) << "a key was narrowed to the binding that it had";
  EXPECT_TRUE(plan::change(minting, plan::in_force(minting)));
  wanted.credentials[0].source = first.policy.credentials[0].source;

  wanted.credentials[0].uses = 5;
  EXPECT_FALSE(plan::change(first, wanted)) << "uses are counted from the start";
  wanted = plan::in_force(first);
  wanted.credentials[0].require = false;
  EXPECT_FALSE(plan::change(first, wanted));
}

}  // namespace
