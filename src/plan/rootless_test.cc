// make() and verify() for an ordinary user: what is held otherwise, what is refused, what is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::HostFacts;
using plan::Plan;
using plan::Protection;
using plan::Refused;
using policy::Policy;

base::Result<Plan> try_make(const Policy& policy, const HostFacts& host) {
  return plan::make(policy, host, plan::testing::ask(), plan::testing::letters);
}

Policy without_groups() {
  Policy policy;
  policy.limits.not_required = {"memory", "cpus", "io"};
  return policy;
}

Plan made(const Policy& policy, const HostFacts& host) {
  auto plan = try_make(policy, host);
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

TEST(Rootless, EveryLimitThatCannotBeHeldIsNamedInOneMessage) {
  const auto plan = try_make(Policy{}, plan::testing::user_host());
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, base::Kind::missing);
  const std::string line = plan.error().line();
  for (const char* part : {"limits.memory", "limits.cpus", "limits.not_required"}) {
    EXPECT_TRUE(line.contains(part)) << line;
  }
  for (const char* held : {"limits.processes", "limits.disk", "loop", "CAP_", "freeze"}) {
    EXPECT_FALSE(line.contains(held)) << line;
  }
  EXPECT_FALSE(line.contains('\n'));
}

TEST(Rootless, IsMadeOfTheCallersOwnUidAndADiskInMemory) {
  Plan plan = made(without_groups(), plan::testing::user_host());
  EXPECT_EQ(plan.rights, plan::Rights::user);
  EXPECT_EQ(plan.unheld, (std::vector<std::string>{"memory", "cpus"}));
  EXPECT_EQ(the_step<plan::MapUsers>(plan).count, 1U);
  EXPECT_EQ(the_step<plan::MountDev>(plan).devices, plan::Devices::bound);
  const auto& disk = the_step<plan::MountDisk>(plan);
  EXPECT_EQ(disk.store, plan::Store::memory);
  EXPECT_EQ(disk.size, plan.policy.limits.memory / 2);
  EXPECT_EQ(plan.policy.limits.disk, disk.size) << "the policy of a plan is what holds";
  EXPECT_LE(disk.inodes, disk.size / 4096);
  EXPECT_EQ(the_step<plan::Rlimits>(plan).processes, plan.policy.limits.processes + 1);
  EXPECT_EQ(plan::step_of<plan::EnterCgroup>(plan), nullptr);
  EXPECT_FALSE(plan.protections.contains(Protection::cgroup));
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
}

TEST(Rootless, AskingForLessDiskGivesLess) {
  Policy policy = without_groups();
  policy.limits.disk = 8ULL << 20;
  Plan plan = made(policy, plan::testing::user_host());
  EXPECT_EQ(the_step<plan::MountDisk>(plan).size, 8ULL << 20);
}

TEST(Rootless, WhatItWeakensIsToldAndMayBeAccepted) {
  Policy policy = without_groups();
  const Plan plan = made(policy, plan::testing::user_host());
  const auto told = std::ranges::find_if(
      plan.below_advice, [](const auto& entry) { return entry.starts_with("rootless: "); });
  ASSERT_NE(told, plan.below_advice.end());
  for (const char* part : {"uid", "supplementary groups", "memory, 1GiB"}) {
    EXPECT_TRUE(told->contains(part)) << *told;
  }
  EXPECT_TRUE(plan::explain(plan).contains("rootless: "));
  EXPECT_TRUE(plan::to_json(plan).contains(R"("rights":"user")"));
  policy.isolation.accept = {"rootless", "shared-kernel"};
  EXPECT_TRUE(plan::not_accepted(made(policy, plan::testing::user_host())).empty());
}

TEST(Rootless, DelegatedGroupsHoldTheirLimits) {
  HostFacts host = plan::testing::user_host();
  for (const char* name : {"memory", "cpu", "pids", "unified"}) {
    host.controllers[name] = {plan::CgroupKind::v2, "/sys/fs/cgroup/user.slice/box"};
  }
  Plan plan = made(Policy{}, host);
  EXPECT_TRUE(plan.unheld.empty());
  EXPECT_EQ(the_step<plan::Rlimits>(plan).processes, 0U) << "the group counts them";
  EXPECT_TRUE(plan.protections.contains(Protection::cgroup));
  EXPECT_TRUE(plan::verify(plan)) << plan::verify(plan).error().line();
}

TEST(Rootless, VerifyTakesNeitherForTheOther) {
  struct Case {
    const char* what;
    std::function<void(Plan&)> change;
  };
  const Case as_user[] = {
      {"disk_limit", [](Plan& p) { the_step<plan::MountDisk>(p).store = plan::Store::image; }},
      {"disk_limit", [](Plan& p) { the_step<plan::MountDisk>(p).size *= 2; }},
      {"user_namespace", [](Plan& p) { the_step<plan::MapUsers>(p).count = 65536; }},
      {"process_limit", [](Plan& p) { the_step<plan::Rlimits>(p).processes = 0; }},
      {"process_limit", [](Plan& p) { the_step<plan::Rlimits>(p).processes += 1; }},
      {"protection", [](Plan& p) { p.rights = plan::Rights::root; }},
      {"memory_limit", [](Plan& p) { p.unheld = {"cpus"}; }},
  };
  for (const auto& one : as_user) {
    Plan plan = made(without_groups(), plan::testing::user_host());
    one.change(plan);
    const auto status = plan::verify(plan);
    ASSERT_FALSE(status) << one.what;
    EXPECT_TRUE(status.error().line().contains(one.what)) << status.error().line();
  }
  Plan plan = made(Policy{}, plan::testing::host());
  the_step<plan::MountDisk>(plan).store = plan::Store::memory;
  EXPECT_FALSE(plan::verify(plan)) << "as root the disk is an image";
  plan = made(Policy{}, plan::testing::host());
  plan.rights = plan::Rights::user;
  EXPECT_FALSE(plan::verify(plan)) << "a lease is no user's to give";
}

struct RefusalCase {
  const char* name;
  std::function<void(HostFacts&)> take;
  const char* what;
  const char* remedy;
};

// F60, F61: each with the one setting that would do.
TEST(Rootless, HostsThatRefuseNamespacesSayWhatWouldDo) {
  const RefusalCase cases[] = {
      {"sysctl of user namespaces", [](HostFacts& h) { h.user_namespaces = false; },
       "user namespaces", "user.max_user_namespaces=15000"},
      {"Debian's switch",
       [](HostFacts& h) { h.refused = Refused::user_namespace, h.userns_for_root_alone = true; },
       "ordinary users", "kernel.unprivileged_userns_clone=1"},
      {"Ubuntu 24.04",
       [](HostFacts& h) { h.refused = Refused::namespaces, h.userns_by_profile_alone = true; },
       "AppArmor", "userns,"},
      {"Docker's filter", [](HostFacts& h) { h.refused = Refused::user_namespace; },
       "outer container", "seccomp=unconfined"},
      {"Docker's masks", [](HostFacts& h) { h.refused = Refused::proc; }, "/proc",
       "systempaths=unconfined"},
      {"nf_tables", [](HostFacts& h) { h.nf_tables = false; }, "nf_tables", "modprobe"},
      {"Landlock", [](HostFacts& h) { h.landlock_abi = 0; }, "Landlock", "lsm="},
      {"kernel", [](HostFacts& h) { h.kernel_major = 5; }, "kernel", "6.1"},
  };
  for (const auto& one : cases) {
    HostFacts host = plan::testing::user_host();
    one.take(host);
    const auto plan = try_make(without_groups(), host);
    ASSERT_FALSE(plan) << one.name;
    EXPECT_EQ(plan.error().kind, base::Kind::missing) << one.name;
    EXPECT_TRUE(plan.error().what.contains(one.what)) << plan.error().line();
    EXPECT_TRUE(plan.error().expected.contains(one.remedy)) << plan.error().line();
  }
}

// What follows from a refusal is not named as a lack of its own.
TEST(Rootless, OneCauseIsNamedOnce) {
  HostFacts host = plan::testing::user_host();
  host.user_namespaces = false;
  host.refused = Refused::user_namespace;
  host.nf_tables = false;
  const auto plan = try_make(without_groups(), host);
  ASSERT_FALSE(plan);
  EXPECT_FALSE(plan.error().what.contains(';')) << plan.error().line();
}

}  // namespace
