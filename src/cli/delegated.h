// A cgroup of the caller's own, asked of systemd where nobody else gave one.
#pragma once

#include "cli/cli.h"
#include "plan/plan.h"

namespace cli {

// Moves this process into a scope of the user manager's whose group belongs to the caller
// (StartTransientUnit with Delegate, by way of busctl, which ends before this returns), and there
// into a group below it, so that the scope's group can hand its controllers down. True where that
// was done: the facts of the groups are then others. False where an ordinary user is not lacking
// controllers, or there is no user manager to ask, or it refuses: what is then lacking is for the
// plan to say.
[[nodiscard]] bool join_delegated_group(const World& world, const plan::HostFacts& facts);

}  // namespace cli
