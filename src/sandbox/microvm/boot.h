// A machine up to the moment where it waits for what makes it a sandbox: its archive, its box, its
// VMM. A start and the making of a template have this in common.
#pragma once

#include <memory>
#include <string>

#include "sandbox/microvm/guest_frames.h"
#include "sandbox/microvm/vmm.h"

namespace sandbox {

inline constexpr int kBootMs = 90'000;  // an emulated guest on a busy host takes its time

// Destroying it ends the machine and its box.
struct Booted {
  std::unique_ptr<Sandbox> box;
  std::unique_ptr<Vmm> vmm;
  MachineEnds ends;
};

// The archive that the guest boots from, below the state folder; made where there is none. Its name
// tells of which programs and modules it is.
[[nodiscard]] base::Result<std::string> archive_file(const plan::Plan& plan, const Inputs& inputs);

// Starts the VMM of plan.machine in a box of its own; the guest is not waited for.
[[nodiscard]] base::Result<Booted> boot_machine(const plan::Plan& plan, const Inputs& inputs,
                                                const Beginning& beginning);

// Until the guest says it. Errors: what the guest or the VMM said in its place; EPROTO; nothing
// within kBootMs.
[[nodiscard]] base::Status await(Booted& machine, GuestSays wanted);

// A file as it is now: its path, inode, size and time of change.
[[nodiscard]] base::Result<std::string> identity_of(const std::string& path);

}  // namespace sandbox
