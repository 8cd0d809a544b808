// The plan of `cerco proxy`: gateway, broker and journal, and no sandbox.
#pragma once

#include "plan/plan.h"

namespace plan {

// What the policy says of isolation, files, environment and limits is left to whoever runs the code
// that the proxy serves, and said by who calls this; what it says of the network, credentials and
// alerts is held as in a run. Errors: bad_input (network.resolvers).
[[nodiscard]] base::Result<Plan> make_proxy(const policy::Policy& policy, const HostFacts& host,
                                            const std::function<std::string(std::size_t)>& random);

}  // namespace plan
