// The command line of QEMU's `microvm` machine: the devices a guest needs, and none beside.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "sandbox/microvm/vmm.h"

namespace sandbox {

// What QEMU finds at which number (frame::Exec::passed).
enum : int {
  kVmmControl = 3,  // stream socket: the guest's control port
  kVmmWatch = 4,    // stream socket: its watch port
  kVmmBase = 5,     // EROFS image, read-only
  kVmmDisk = 6,     // the working disk's image
  kVmmTap = 7,
  // Of a machine whose memory is a file.
  kVmmMonitor = 8,  // stream socket: QMP
  kVmmMemory = 9,
  kVmmDevices = 10,  // what a template has of the devices; of a copy alone
};

inline constexpr const char* kBoxKernel = "/vmlinuz";  // within the VMM's box
inline constexpr const char* kBoxArchive = "/archive";
inline constexpr const char* kBoxMemoryOpener = "/memory.so";
// Of the helpers: gives QEMU descriptor kVmmMemory where it opens "/memory" (main/vmm_memory.cc).
inline constexpr const char* kMemoryOpener = "/cerco-vmm-memory.so";

// argv, beginning with the program. Pure.
[[nodiscard]] std::vector<std::string> qemu_arguments(const plan::Machine& machine, Memory memory);
// What the guest's kernel is told. Pure.
[[nodiscard]] std::string kernel_command_line(const plan::Machine& machine);
// QMP, all that is ever said (qemu docs/interop/qmp-spec, qapi/migration.json); no answer is read.
// To a machine that is recorded: name the descriptor that comes along, then write the devices to
// it.
[[nodiscard]] std::string record_descriptor_words();
[[nodiscard]] std::string record_words();
// To a copy: read them. It runs by itself when that is done: a `cont` before would hang the guest.
[[nodiscard]] std::string restore_words();

}  // namespace sandbox
