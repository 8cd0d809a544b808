// The acts of `cerco doctor --canary`.
#pragma once

#include "cli/canary.h"
#include "cli/cli.h"

namespace cli {

// Plants a secret, makes one run under the policy of the flags, and looks where the secret went.
// The policy's own credentials stay out of it. Errors: bad_input, and what hinders the planting;
// `unsupported` for the isolate tier, which has no shell.
[[nodiscard]] base::Result<std::vector<CanaryFinding>> try_canary(
    const World& world, const policy::Effective& effective);

}  // namespace cli
