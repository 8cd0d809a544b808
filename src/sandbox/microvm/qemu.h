// The command line of QEMU's `microvm` machine: the devices a guest needs, and none beside.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace sandbox {

// What QEMU finds at which number (frame::Exec::passed).
enum : int {
  kVmmControl = 3,  // stream socket: the guest's control port
  kVmmWatch = 4,    // stream socket: its watch port
  kVmmBase = 5,     // EROFS image, read-only
  kVmmDisk = 6,     // the working disk's image
  kVmmTap = 7,
  kVmmMonitor = 8,  // stream socket: QMP
};
inline constexpr std::uint32_t kVmmPassed = 6;

inline constexpr const char* kBoxKernel = "/vmlinuz";  // within the VMM's box
inline constexpr const char* kBoxArchive = "/archive";

// argv, beginning with the program. Pure.
[[nodiscard]] std::vector<std::string> qemu_arguments(const plan::Machine& machine);
// What the guest's kernel is told. Pure.
[[nodiscard]] std::string kernel_command_line(const plan::Machine& machine);

}  // namespace sandbox
