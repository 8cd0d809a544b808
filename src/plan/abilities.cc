// The same lacks that make() would refuse a start for, told by tier and by protection.
#include "plan/abilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {
namespace {

Ability ability(std::string name, const std::vector<Lack>& lacks) {
  Ability out;
  out.name = std::move(name);
  out.given = lacks.empty();
  for (const Lack& lack : lacks) {
    out.lacks.push_back(lack.what);
    const bool known = std::ranges::find(out.remedies, lack.remedy) != out.remedies.end();
    if (!lack.remedy.empty() && !known) out.remedies.push_back(lack.remedy);
  }
  return out;
}

// Words of a lack by which it is told that a protection falls with it (requirements.cc, limits.cc).
struct StandsOn {
  Protection protection;
  std::vector<std::string_view> words;
};

const std::vector<StandsOn>& stands_on() {
  static const std::vector<StandsOn> kAll = {
      {Protection::landlock, {"Landlock"}},
      {Protection::seccomp, {"seccomp filters"}},
      {Protection::user_namespace, {"user namespaces"}},
      {Protection::time_namespace, {"time namespaces"}},
      {Protection::capture, {"nf_tables"}},
      {Protection::disk_limit, {"loop devices", "limits.disk"}},
      {Protection::cgroup, {"cgroup to freeze and kill"}},
      {Protection::memory_limit, {"limits.memory", "limits.swap", "socket memory"}},
      {Protection::process_limit, {"limits.processes"}},
      {Protection::cpu_limit, {"limits.cpus"}},
      {Protection::name_filter, {"a resolver"}},
      {Protection::read_only_base, {"/usr for the base"}}};
  return kAll;
}

bool speaks_of(const Lack& lack, const std::vector<std::string_view>& words) {
  return std::ranges::any_of(words,
                             [&](std::string_view word) { return lack.what.contains(word); });
}

}  // namespace

std::vector<Ability> tier_abilities(const policy::Policy& policy, const HostFacts& host) {
  std::vector<Ability> tiers;
  for (const policy::Tier tier : {policy::Tier::isolate, policy::Tier::container,
                                  policy::Tier::gvisor, policy::Tier::microvm}) {
    tiers.push_back(
        ability(std::string(policy::to_string(tier)), lacks_of_tier(tier, policy, host)));
  }
  return tiers;
}

// A lack that no one protection stands on (rights, the kernel's age, our own programs) is one of
// all of them.
std::vector<Ability> protection_abilities(const policy::Policy& policy, const HostFacts& host) {
  const std::vector<Lack> lacks = lacks_of_tier(policy::Tier::container, policy, host);
  std::vector<Lack> common;
  for (const Lack& lack : lacks) {
    const bool single = std::ranges::any_of(
        stands_on(), [&](const StandsOn& one) { return speaks_of(lack, one.words); });
    if (!single) common.push_back(lack);
  }
  std::vector<Ability> out;
  HeldLimits held = hold_limits(policy.limits, host);
  Plan plan;
  plan.policy = policy;
  plan.rights = host.root ? Rights::root : Rights::user;
  plan.unheld = std::move(held.unheld);
  plan.cgroup = std::move(held.cgroup);
  for (const Protection protection : required(plan)) {
    std::vector<Lack> its = common;
    for (const StandsOn& one : stands_on()) {
      if (one.protection != protection) continue;
      std::ranges::copy_if(lacks, std::back_inserter(its),
                           [&](const Lack& lack) { return speaks_of(lack, one.words); });
    }
    out.push_back(ability(std::string(to_string(protection)), its));
  }
  return out;
}

}  // namespace plan
