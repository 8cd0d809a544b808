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

void lacks_of_gvisor(const HostFacts& host, std::vector<Lack>& lacks) {
  if (!host.root) {
    lacks.push_back({"root's rights, which the gvisor tier takes", "run cerco as root"});
  }
  if (host.runsc.empty()) {
    lacks.push_back({"gVisor's runsc in /usr/local/bin, /usr/bin or /usr/sbin",
                     "install the package runsc (Debian), or a release from gvisor.dev"});
  }
}

}  // namespace

std::vector<Lack> lacks_of_tier(policy::Tier tier, const policy::Policy& policy,
                                const HostFacts& host) {
  std::vector<Lack> lacks = lacks_of_host(host);
  std::ranges::move(hold_limits(limits_of_host(tier, policy.limits), host).lacks,
                    std::back_inserter(lacks));
  std::ranges::move(lacks_of_files(tier, policy.filesystem, host), std::back_inserter(lacks));
  if (tier == policy::Tier::isolate) {
    std::ranges::move(lacks_of_engine(host), std::back_inserter(lacks));
  }
  if (tier == policy::Tier::microvm) {
    std::ranges::move(lacks_of_machine(policy, host), std::back_inserter(lacks));
  }
  if (tier == policy::Tier::gvisor) lacks_of_gvisor(host, lacks);
  if (resolves_names(policy) && policy.network.resolvers.empty() && host.resolvers.empty()) {
    lacks.push_back({"a resolver for the names of the egress rules", "set network.resolvers"});
  }
  return lacks;
}

policy::Limits limits_of_host(policy::Tier tier, const policy::Limits& limits) {
  return tier == policy::Tier::microvm ? limits_of_box(limits) : limits_for(tier, limits);
}

bool asks_of_storage(const policy::Policy& policy) {
  return policy.filesystem.root == policy::RootMode::scratch ||
         policy.limits.io != policy::kUnlimited;
}

bool may_use_gvisor(const policy::Policy& policy) {
  if (policy.isolation.tier) return *policy.isolation.tier == policy::Tier::gvisor;
  return advised_tier(policy) >= policy::Tier::gvisor;
}

base::Result<policy::Tier> choose_tier(const policy::Policy& policy, const HostFacts& host,
                                       Serves serves) {
  const auto serves_in = [&](policy::Tier tier) {
    return tier != policy::Tier::gvisor || serves == Serves::its_caller;
  };
  if (const auto asked = policy.isolation.tier) {
    if (!serves_in(*asked)) return base::not_yet("a session or a detached run in tier gvisor");
    return *asked;
  }
  const policy::Tier advised = advised_tier(policy);
  // By ptrace each system call takes some three hundred times as long, and the release that knows
  // nothing else is of 2022: that is for who asks for it by name.
  const auto given = [&](policy::Tier tier) {
    const bool slow = tier == policy::Tier::gvisor && host.runsc_platform != "systrap";
    return !slow && serves_in(tier) && lacks_of_tier(tier, policy, host).empty();
  };
  // What is advised or the next stronger one that is here, else the strongest.
  for (const policy::Tier tier : kAutomatic) {
    if (tier >= advised && given(tier)) return tier;
  }
  const auto strongest = std::ranges::find_if(kAutomatic.rbegin(), kAutomatic.rend(), given);
  return strongest == kAutomatic.rend() ? policy::Tier::container : *strongest;
}

}  // namespace plan
