// The guest's start before its sandbox: file systems, modules, settings, the network card.
#pragma once

#include <string>

#include "base/base.h"
#include "sandbox/microvm/guest_frames.h"

namespace sandbox {

// /proc, /sys and /dev; the modules, and none after them; a root that can be left; the base.
[[nodiscard]] base::Status prepare_guest();
// The port of that name, as the host gave it.
[[nodiscard]] base::Result<base::Fd> open_port(std::string_view name);
// What makes this guest itself and no copy of another: random numbers of the host's and the time.
[[nodiscard]] base::Status become_new(const GuestLaunch& launch);
// The base, its first disk; its card with the addresses of the plan; groups for the sandbox.
[[nodiscard]] base::Status mount_base();
[[nodiscard]] base::Status set_up_network();
[[nodiscard]] base::Status mount_groups();

}  // namespace sandbox
