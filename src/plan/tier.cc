// Which tier a plan takes on a host, and what that host lacks for each.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {
namespace {

// The weakest first. Only a container and what is built on it is `auto` ever: an isolate runs
// nothing but JavaScript, and so is asked for by name.
constexpr std::array kAutomatic = {policy::Tier::container, policy::Tier::gvisor,
                                   policy::Tier::microvm};

bool is_built(policy::Tier tier) {
  return tier == policy::Tier::container || tier == policy::Tier::microvm;
}

}  // namespace

std::vector<Lack> lacks_of_tier(policy::Tier tier, const policy::Policy& policy,
                                const HostFacts& host) {
  if (!is_built(tier)) return {{"not carried out yet", ""}};
  std::vector<Lack> lacks = lacks_of_host(host);
  const bool machine = tier == policy::Tier::microvm;
  const policy::Limits held = machine ? limits_of_box(policy.limits) : policy.limits;
  std::ranges::move(hold_limits(held, host).lacks, std::back_inserter(lacks));
  if (machine) std::ranges::move(lacks_of_machine(policy, host), std::back_inserter(lacks));
  if (resolves_names(policy) && policy.network.resolvers.empty() && host.resolvers.empty()) {
    lacks.push_back({"a resolver for the names of the egress rules", "set network.resolvers"});
  }
  return lacks;
}

base::Result<policy::Tier> choose_tier(const policy::Policy& policy, const HostFacts& host) {
  if (const auto asked = policy.isolation.tier) {
    if (is_built(*asked)) return *asked;
    return base::not_yet(fmt::format("isolation.tier = \"{}\"", policy::to_string(*asked)));
  }
  const policy::Tier advised = advised_tier(policy);
  const auto given = [&](policy::Tier tier) { return lacks_of_tier(tier, policy, host).empty(); };
  // What is advised or the next stronger one that is here, else the strongest.
  for (const policy::Tier tier : kAutomatic) {
    if (tier >= advised && given(tier)) return tier;
  }
  const auto strongest = std::ranges::find_if(kAutomatic.rbegin(), kAutomatic.rend(), given);
  return strongest == kAutomatic.rend() ? policy::Tier::container : *strongest;
}

}  // namespace plan
