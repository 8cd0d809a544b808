// The process between the starter and the sandbox.
#pragma once

#include "sandbox/container/prepared.h"

namespace sandbox {

// Descriptors that outer and inner find open.
struct StartEnds {
  int channel = -1;  // start channel
  int control = -1;  // cerco-init's end of its control channel
  // With gVisor in its place: standard input, output and error of runsc.
  int streams[3] = {-1, -1, -1};
};

// Enters the cgroups, restarts the clocks, clones the inner process as a child of the starter, and
// then lends its user namespace until it is killed.
[[noreturn]] void run_outer(const Prepared& prepared, const priv::Groups& groups,
                            const StartEnds& ends);

// Carries out the plan's steps within the new namespaces and executes cerco-init.
[[noreturn]] void run_inner(const Prepared& prepared, const priv::Inside& inside,
                            const StartEnds& ends);

}  // namespace sandbox
