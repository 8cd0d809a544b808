// What `cerco doctor` says of a host, against what make() refuses.
#include "plan/abilities.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/testing.h"

namespace {

using plan::Ability;

const Ability& named(const std::vector<Ability>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Ability::name);
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(Abilities, AWholeHostGivesAll) {
  const auto host = plan::testing::host();
  const auto tiers = plan::tier_abilities({}, host);
  ASSERT_EQ(tiers.size(), 4U);
  EXPECT_TRUE(named(tiers, "container").given);
  EXPECT_FALSE(named(tiers, "gvisor").given);  // it has no runsc
  EXPECT_TRUE(named(plan::tier_abilities({}, plan::testing::gvisor_host()), "gvisor").given);
  for (const char* later : {"isolate", "microvm"}) EXPECT_FALSE(named(tiers, later).given);
  for (const Ability& one : plan::protection_abilities({}, host))
    EXPECT_TRUE(one.given) << one.name;
}

struct Row {
  std::string protection;
  void (*change)(plan::HostFacts&);
};

TEST(Abilities, WhatIsMissingIsNamedWithItsRemedy) {
  const Row rows[] = {
      {"landlock", [](plan::HostFacts& host) { host.landlock_abi = 0; }},
      {"seccomp", [](plan::HostFacts& host) { host.seccomp = false; }},
      {"user_namespace", [](plan::HostFacts& host) { host.user_namespaces = false; }},
      {"time_namespace", [](plan::HostFacts& host) { host.time_namespaces = false; }},
      {"capture", [](plan::HostFacts& host) { host.nf_tables = false; }},
      {"disk_limit", [](plan::HostFacts& host) { host.loop_devices = false; }},
      {"disk_limit", [](plan::HostFacts& host) { host.state_disk_free = 0; }},
      {"memory_limit", [](plan::HostFacts& host) { host.controllers.erase("memory"); }},
      {"process_limit", [](plan::HostFacts& host) { host.controllers.erase("pids"); }},
      {"cpu_limit", [](plan::HostFacts& host) { host.controllers.erase("cpu"); }}};
  for (const Row& row : rows) {
    auto host = plan::testing::host();
    row.change(host);
    const auto all = plan::protection_abilities({}, host);
    for (const Ability& one : all)
      EXPECT_EQ(one.given, one.name != row.protection) << row.protection << one.name;
    EXPECT_FALSE(named(all, row.protection).remedies.empty()) << row.protection;
    EXPECT_FALSE(named(plan::tier_abilities({}, host), "container").given) << row.protection;
    EXPECT_FALSE(plan::make({}, host, plan::testing::ask(), plan::testing::letters))
        << row.protection;
  }
}

TEST(Abilities, AnOldKernelGivesNothing) {
  auto host = plan::testing::host();
  host.kernel_major = 5;
  for (const Ability& one : plan::protection_abilities({}, host))
    EXPECT_FALSE(one.given) << one.name;
}

}  // namespace
