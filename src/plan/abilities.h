// What this host can give of the tiers and of each protection, for `cerco doctor`.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace plan {

struct Ability {
  std::string name;  // of a tier or a protection
  bool given = false;
  std::vector<std::string> lacks;     // what is missing, empty where it is given
  std::vector<std::string> remedies;  // what would do
};

// The tiers, the weakest first. Only the container is built; what is not says so.
[[nodiscard]] std::vector<Ability> tier_abilities(const policy::Policy& policy,
                                                  const HostFacts& host);
// Every protection that the policy asks for.
[[nodiscard]] std::vector<Ability> protection_abilities(const policy::Policy& policy,
                                                        const HostFacts& host);

}  // namespace plan
