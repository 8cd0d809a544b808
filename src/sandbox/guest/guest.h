// Pid 1 of a microVM's guest: from the kernel's first program to a sandbox as the container tier
// makes it, and what the host asks of it then.
#pragma once

#include "base/base.h"

namespace sandbox {

// Where the archive that the guest boots from has things.
inline constexpr const char* kModules = "/modules";
inline constexpr const char* kGuestInit = "/cerco-init";

// Everything, in order; returns when the sandbox has ended or could not be started, which the host
// has been told then. Whoever calls it turns the machine off.
void run_guest();

}  // namespace sandbox
