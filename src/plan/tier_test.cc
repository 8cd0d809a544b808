// Which tier a plan takes, and what the gVisor tier changes in one.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::Plan;
using policy::Policy;
using policy::Tier;

Policy asks_for(Tier tier) {
  Policy policy;
  policy.isolation.tier = tier;
  return policy;
}

base::Result<Plan> make(const Policy& policy, const plan::HostFacts& host) {
  return plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
}

Plan gvisor_plan() {
  auto made = make(asks_for(Tier::gvisor), plan::testing::gvisor_host());
  EXPECT_TRUE(made) << made.error().line();
  return made.value_or(Plan{});
}

std::string pids_of(const Plan& plan) {
  for (const auto& group : plan.cgroup.groups) {
    for (const auto& [file, text] : group.limits) {
      if (file == "pids.max") return text;
    }
  }
  return {};
}

TEST(GvisorPlan, is_the_containers_but_for_landlock_and_runsc) {
  const Plan plan = gvisor_plan();
  EXPECT_EQ(plan.tier, Tier::gvisor);
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
  const Plan container = *make(asks_for(Tier::container), plan::testing::gvisor_host());
  // Written files differ from run to run.
  const auto told = [](const Plan& of) {
    std::vector<std::string> all;
    for (const auto& step : of.steps) {
      if (!std::holds_alternative<plan::WriteFile>(step)) all.push_back(plan::describe(step));
    }
    return all;
  };
  std::vector<std::string> expected = told(container);
  std::erase_if(expected, [](const auto& line) { return line.starts_with("landlock "); });
  expected.emplace_back("run_gvisor /usr/bin/runsc (runsc 0.0~20221219.0), platform ptrace");
  EXPECT_EQ(told(plan), expected);
  auto protections = container.protections;
  protections.erase(plan::Protection::landlock);
  EXPECT_EQ(plan.protections, protections);
  EXPECT_TRUE(plan.below_advice.empty());
  EXPECT_TRUE(plan::explain(plan).contains("platform ptrace"));
}

// Threads of its kernel count beside those of the workload.
TEST(GvisorPlan, has_room_for_its_kernels_threads) {
  const Plan plan = gvisor_plan();
  const auto container = make(asks_for(Tier::container), plan::testing::host());
  ASSERT_TRUE(container);
  EXPECT_EQ(std::stoull(pids_of(plan)), 512 + 3 * std::stoull(pids_of(*container)));
}

TEST(GvisorPlan, without_runsc_or_root_says_what_would_do) {
  const auto none = make(asks_for(Tier::gvisor), plan::testing::host());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, base::Kind::missing);
  EXPECT_TRUE(none.error().line().contains("install the package runsc")) << none.error().line();
  plan::HostFacts user = plan::testing::user_host();
  user.runsc = "/usr/bin/runsc";
  const auto rootless = make(asks_for(Tier::gvisor), user);
  ASSERT_FALSE(rootless);
  EXPECT_TRUE(rootless.error().line().contains("run cerco as root")) << rootless.error().line();
}

TEST(GvisorPlan, auto_takes_it_where_it_is_advised_and_there) {
  plan::HostFacts host = plan::testing::gvisor_host();
  EXPECT_EQ(make({}, host)->tier, Tier::container) << "by ptrace it is for who asks for it";
  host.runsc_platform = "systrap";
  EXPECT_EQ(make({}, host)->tier, Tier::gvisor);
  EXPECT_EQ(make({}, plan::testing::host())->tier, Tier::container);
  Policy reviewed;
  reviewed.code = policy::Code::reviewed;
  EXPECT_EQ(make(reviewed, host)->tier, Tier::container);
}

TEST(GvisorPlan, further_commands_are_not_carried_out_yet) {
  for (const bool session : {true, false}) {
    plan::Ask ask = plan::testing::ask();
    if (session) ask.argv.clear();
    ask.session = session;
    ask.detached = !session;
    auto host = plan::testing::gvisor_host();
    host.runsc_platform = "systrap";
    const auto asked = plan::make(asks_for(Tier::gvisor), host, ask, plan::testing::letters);
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().kind, base::Kind::unsupported);
    const auto automatic = plan::make({}, host, ask, plan::testing::letters);
    ASSERT_TRUE(automatic);
    EXPECT_EQ(automatic->tier, Tier::container);
  }
}

TEST(GvisorPlan, verify_refuses_what_does_not_fit_the_tier) {
  Plan plan = gvisor_plan();
  plan.steps.pop_back();
  EXPECT_FALSE(plan::verify(plan));  // the tier's one step is gone
  plan = gvisor_plan();
  plan.tier = Tier::container;
  EXPECT_FALSE(plan::verify(plan));
  for (const plan::RunGvisor& step :
       {plan::RunGvisor{"runsc", "", "ptrace"}, plan::RunGvisor{"/a/../runsc", "", "ptrace"},
        plan::RunGvisor{"/usr/bin/runsc", "", "kvm"}, plan::RunGvisor{"/usr/bin/runsc", "", ""}}) {
    plan = gvisor_plan();
    plan.steps.back() = step;
    EXPECT_FALSE(plan::verify(plan)) << step.program << " " << step.platform;
  }
}

}  // namespace
