// The policy of a run: what is in force in one that lives, and what was last in one that has ended.
#pragma once

#include <string>

#include "cli/cli.h"
#include "cli/living.h"

namespace cli {

struct RunPolicy {
  std::string run;  // id
  policy::Policy policy;
};

// Asks the supervisor; one question a channel.
[[nodiscard]] base::Result<policy::Policy> policy_in_force(const ipc::Channel& channel);
// Of a run that lives by its supervisor, else by its journal. not_found when there is no such run.
[[nodiscard]] base::Result<RunPolicy> policy_of_run(const World& world, const std::string& run);
// The same with an origin for every value: "run RUN, policy 2".
[[nodiscard]] base::Result<policy::Effective> effective_of_run(const World& world,
                                                               const std::string& run);

}  // namespace cli
