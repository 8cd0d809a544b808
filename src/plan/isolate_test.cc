// make() and verify() for an isolate: what is in the box, what is refused, what is told.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::HostFacts;
using plan::Plan;
using policy::Policy;

HostFacts isolate_host() {
  HostFacts facts = plan::testing::host();
  facts.engine.version = "1.20261117.1";
  facts.engine.day = "2026-11-17";
  facts.engine.days_old = 13;
  facts.engine.files = {{"/engine/workerd", "/opt/cerco/engine/workerd"},
                        {"/engine/cerco-isolate", "/opt/cerco/cerco-isolate"},
                        {"/lib/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"},
                        {"/lib64/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"}};
  return facts;
}

Policy isolate_policy() {
  Policy policy;
  policy.isolation.tier = policy::Tier::isolate;
  return policy;
}

plan::Ask script() {
  plan::Ask ask;
  ask.argv = {"a.js", "x"};
  return ask;
}

base::Result<Plan> try_make(const Policy& policy, const HostFacts& host) {
  return plan::make(policy, host, script(), plan::testing::letters);
}

Plan made(const Policy& policy = isolate_policy(), const HostFacts& host = isolate_host()) {
  auto plan = try_make(policy, host);
  if (!plan) ADD_FAILURE() << plan.error().line();
  return plan ? *plan : Plan{};
}

TEST(Isolate, HoldsTheEngineAndNothingOfTheHostsBase) {
  const Plan plan = made();
  EXPECT_EQ(plan.tier, policy::Tier::isolate);
  ASSERT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
  std::vector<std::string> bound;
  for (const plan::Step& step : plan.steps) {
    if (const auto* bind = std::get_if<plan::BindReadOnly>(&step)) bound.push_back(bind->target);
  }
  EXPECT_EQ(bound, (std::vector<std::string>{"/engine/cerco-isolate", "/engine/workerd",
                                             "/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}));
  const auto* disk = plan::step_of<plan::MountDisk>(plan);
  ASSERT_NE(disk, nullptr);
  EXPECT_EQ(disk->store, plan::Store::memory);
  EXPECT_EQ(disk->targets, std::vector<std::string>{"/workspace"});
  EXPECT_EQ(plan.command.argv, (std::vector<std::string>{"/engine/cerco-isolate", "a.js", "x"}));
  EXPECT_EQ(plan.command.env, (std::map<std::string, std::string>{{"CERCO_RUN", plan.run}}));
}

TEST(Isolate, TheAuthoritiesComeInWhereSomethingCanBeReached) {
  Policy policy = isolate_policy();
  policy.egress = {plan::testing::rule("web", "example.com", {443})};
  const Plan plan = made(policy);
  EXPECT_TRUE(std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* bind = std::get_if<plan::BindReadOnly>(&step);
    return bind != nullptr && bind->target == "/etc/ssl/certs";
  }));
  EXPECT_TRUE(plan::verify(plan));
}

TEST(Isolate, SaysWhichEngineAndThatItAloneIsNoBoundary) {
  const Plan plan = made();
  const std::string text = plan::explain(plan);
  EXPECT_TRUE(text.contains("Tier isolate")) << text;
  EXPECT_TRUE(text.contains("workerd 1.20261117.1 of 2026-11-17, 13 days old")) << text;
  EXPECT_TRUE(text.contains("V8 alone is no boundary")) << text;
  EXPECT_TRUE(plan::to_json(plan).contains("\"engine\":\"workerd 1.20261117.1"));
  ASSERT_EQ(plan.below_advice.size(), 1U);
  EXPECT_TRUE(plan.below_advice[0].starts_with("shared-kernel: unreviewed code in an isolate"));
}

TEST(Isolate, AnOldEngineIsARiskAndOneOfUnknownAgeToo) {
  for (const auto& [day, days] : {std::pair("2026-11-17", 61), std::pair("", 0)}) {
    HostFacts host = isolate_host();
    host.engine.day = day;
    host.engine.days_old = static_cast<std::uint64_t>(days);
    Policy policy = isolate_policy();
    policy.code = policy::Code::tools_only;
    const Plan plan = made(policy, host);
    ASSERT_EQ(plan.below_advice.size(), 1U);
    EXPECT_TRUE(plan.below_advice[0].starts_with("old-engine: ")) << plan.below_advice[0];
  }
  Policy policy = isolate_policy();
  policy.code = policy::Code::tools_only;
  EXPECT_TRUE(made(policy).below_advice.empty());
}

TEST(Isolate, WhatIsMissingIsNamedWithWhatWouldDo) {
  HostFacts host = isolate_host();
  host.engine = {};
  const auto plan = try_make(isolate_policy(), host);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, base::Kind::missing);
  EXPECT_TRUE(plan.error().line().contains("/opt/cerco/engine/workerd")) << plan.error().line();
  EXPECT_TRUE(plan.error().line().contains("tools/install-engine /opt/cerco/engine"));
  EXPECT_TRUE(plan.error().line().contains("cerco-isolate"));
  host = isolate_host();
  host.engine.lacking = {"libgcc_s.so.1"};
  EXPECT_TRUE(try_make(isolate_policy(), host).error().line().contains("libgcc_s.so.1"));
}

TEST(Isolate, WhatAScriptCannotHaveIsRefusedByName) {
  const auto refused = [](auto change, std::string_view key) {
    Policy policy = isolate_policy();
    change(policy);
    const auto plan = try_make(policy, isolate_host());
    ASSERT_FALSE(plan) << key;
    EXPECT_EQ(plan.error().kind, base::Kind::bad_input);
    EXPECT_EQ(plan.error().where, key);
  };
  refused([](Policy& p) { p.isolation.seccomp = policy::SeccompProfile::debug; },
          "isolation.seccomp");
  refused([](Policy& p) { p.isolation.seccomp = policy::SeccompProfile::strict; },
          "isolation.seccomp");
  refused([](Policy& p) { p.filesystem.read_only = {"/opt/data"}; }, "filesystem.read_only");
  refused([](Policy& p) { p.limits.files = 1023; }, "limits.files");
  plan::Ask session = script();
  session.argv.clear();
  session.session = true;
  const auto plan = plan::make(isolate_policy(), isolate_host(), session, plan::testing::letters);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().where, "start");
}

TEST(Isolate, VerifyTakesNoOtherBindCommandOrTier) {
  const auto refused = [](const auto& change) {
    Plan plan = made();
    change(plan);
    return !plan::verify(plan);
  };
  const auto bind = [](const std::string& source, const std::string& target) {
    return [source, target](Plan& plan) {
      for (plan::Step& step : plan.steps) {
        if (auto* held = std::get_if<plan::BindReadOnly>(&step);
            held && held->target == "/lib/libc.so.6")
          *held = {source, target};
      }
    };
  };
  EXPECT_FALSE(refused([](Plan&) {}));
  EXPECT_TRUE(refused(bind("/usr/bin/python3", "/lib/libc.so.6")));
  EXPECT_TRUE(refused(bind("/home/a/libc.so.6", "/lib/libc.so.6")));
  EXPECT_TRUE(refused(bind("/usr", "/usr")));
  EXPECT_TRUE(refused(bind("/home/a/workerd", "/engine/workerd")));
  EXPECT_TRUE(refused([](Plan& plan) { plan.command.argv[0] = "/engine/workerd"; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.tier = policy::Tier::container; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan::take_out(plan, plan::Protection::seccomp); }));
  EXPECT_TRUE(refused([](Plan& plan) { plan::take_out(plan, plan::Protection::disk_limit); }));
}

TEST(Isolate, VerifyHoldsThePlanToItsPolicysTier) {
  Plan plan = made(Policy{});
  ASSERT_TRUE(plan::verify(plan));
  plan.policy.isolation.tier = policy::Tier::isolate;
  plan.policy_sha256 = base::sha256(policy::to_json(plan.policy));
  EXPECT_FALSE(plan::verify(plan));
}

TEST(Isolate, IsNeverWhatAutoComesTo) {
  Policy policy;
  policy.code = policy::Code::tools_only;
  EXPECT_EQ(made(policy).tier, policy::Tier::container);
}

}  // namespace
