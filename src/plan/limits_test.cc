// Limits as the programs inside read them, and processor time.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::HostFacts;
using plan::Plan;
using policy::Policy;

Plan made(const Policy& policy, const HostFacts& host) {
  auto plan = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
  if (!plan) ADD_FAILURE() << plan.error().line();
  return plan ? *plan : Plan{};
}

template <class T>
T& the_step(Plan& plan) {
  for (plan::Step& step : plan.steps) {
    if (T* held = std::get_if<T>(&step)) return *held;
  }
  ADD_FAILURE() << "no such step";
  static T none;
  return none;
}

TEST(Truthful, MeminfoIsTheMemoryLimit) {
  Policy policy;
  policy.limits.memory = 64ULL << 20;
  HostFacts host = plan::testing::host();
  Plan plan = made(policy, host);
  const std::string text = the_step<plan::MountProc>(plan).meminfo;
  for (const char* line : {"MemTotal:          65536 kB\n", "MemAvailable:      65536 kB\n",
                           "SwapTotal:             0 kB\n"}) {
    EXPECT_TRUE(text.contains(line)) << text;
  }
  host.swap_total = 1ULL << 30;
  policy.limits.swap = 32ULL << 20;
  plan = made(policy, host);
  EXPECT_TRUE(the_step<plan::MountProc>(plan).meminfo.contains("SwapTotal:         32768 kB\n"));
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
}

TEST(Truthful, NothingIsSaidThatIsNotHeld) {
  Policy policy;
  policy.limits.memory = policy::kUnlimited;
  policy.limits.cpus_milli = policy::kUnlimited;
  Plan plan = made(policy, plan::testing::host());
  EXPECT_EQ(the_step<plan::MountProc>(plan).meminfo, "");
  EXPECT_EQ(the_step<plan::Rlimits>(plan).processors, 0U);
  policy = {};
  policy.limits.not_required = {"memory", "cpus"};
  plan = made(policy, plan::testing::user_host());
  EXPECT_EQ(the_step<plan::MountProc>(plan).meminfo, "");
  EXPECT_EQ(the_step<plan::Rlimits>(plan).processors, 0U);
  EXPECT_EQ(plan::step_of<plan::MountCgroups>(plan), nullptr);
}

TEST(Truthful, ProcessorsAreCountedAsWholeOnes) {
  for (const auto& [milli, whole] : {std::pair{1U, 1U}, {1000U, 1U}, {1001U, 2U}, {2500U, 3U}}) {
    Policy policy;
    policy.limits.cpus_milli = milli;
    Plan plan = made(policy, plan::testing::host());
    EXPECT_EQ(the_step<plan::Rlimits>(plan).processors, whole) << milli;
  }
}

TEST(Truthful, AnAlteredMeminfoIsBounded) {
  Plan plan = made(Policy{}, plan::testing::host());
  the_step<plan::MountProc>(plan).meminfo.assign(5000, 'x');
  EXPECT_FALSE(plan::verify(plan));
}

TEST(Io, IsALineADiskWhereVersion2HasTheController) {
  Policy policy;
  policy.limits.io = 10 << 20;
  const Plan plan = made(policy, plan::testing::storage_host());
  const auto group =
      std::ranges::find(plan.cgroup.groups, "io", &plan::CgroupPlan::Group::controller);
  ASSERT_NE(group, plan.cgroup.groups.end());
  const std::vector<std::pair<std::string, std::string>> wanted = {
      {"io.max", "8:0 rbps=10485760 wbps=10485760\n259:1 rbps=10485760 wbps=10485760"}};
  EXPECT_EQ(group->limits, wanted);
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
}

// Version 1's blkio does not see what goes through the page cache, so it would hold nothing.
TEST(Io, IsRefusedOrNamedWhereItCannotBeHeld) {
  Policy policy;
  policy.limits.io = 10 << 20;
  HostFacts v1 = plan::testing::storage_host();
  v1.controllers["io"] = {plan::CgroupKind::v1, "/sys/fs/cgroup/blkio"};
  HostFacts none = plan::testing::storage_host();
  none.controllers.erase("io");
  HostFacts unknown = plan::testing::storage_host();
  unknown.disks.clear();
  for (const HostFacts& host : {v1, none, unknown}) {
    policy.limits.not_required.clear();
    const auto plan = plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
    ASSERT_FALSE(plan);
    EXPECT_TRUE(plan.error().line().contains("limits.io")) << plan.error().line();
    EXPECT_TRUE(plan.error().line().contains("limits.not_required")) << plan.error().line();
    policy.limits.not_required = {"io"};
    const Plan without = made(policy, host);
    EXPECT_EQ(without.unheld, std::vector<std::string>{"io"});
    EXPECT_FALSE(without.protections.contains(plan::Protection::io_limit));
    EXPECT_TRUE(plan::verify(without)) << plan::verify(without).error().line();
  }
}

TEST(ProcessorTime, NeedsAGroupThatCounts) {
  Policy policy;
  policy.limits.cpu_ms = 1000;
  Plan plan = made(policy, plan::testing::host());
  EXPECT_TRUE(plan.protections.contains(plan::Protection::processor_time_limit));
  EXPECT_TRUE(made(policy, plan::testing::host_v2())
                  .protections.contains(plan::Protection::processor_time_limit));
  EXPECT_FALSE(made(Policy{}, plan::testing::host())
                   .protections.contains(plan::Protection::processor_time_limit));
  policy.limits.not_required = {"memory", "cpus"};
  const auto refused =
      plan::make(policy, plan::testing::user_host(), plan::testing::ask(), plan::testing::letters);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().line().contains("limits.cpu)")) << refused.error().line();
  policy.limits.not_required.emplace_back("cpu");
  plan = made(policy, plan::testing::user_host());
  EXPECT_EQ(plan.unheld, (std::vector<std::string>{"memory", "cpus", "cpu"}));
  EXPECT_FALSE(plan.protections.contains(plan::Protection::processor_time_limit));
}

}  // namespace
