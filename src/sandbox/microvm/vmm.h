// A virtual machine monitor in its box: one interface for QEMU, and for Firecracker and Cloud
// Hypervisor, which are not built.
#pragma once

#include <memory>
#include <string>

#include "os/os.h"
#include "plan/plan.h"
#include "sandbox/container/container.h"

namespace sandbox {

// Our ends of what a machine was given.
struct MachineEnds {
  base::Fd control;  // stream: the guest's control port
  base::Fd watch;    // stream: its watch port
};

// Where a machine's memory lies.
enum class Memory {
  own,       // with the VMM
  recorded,  // in a file that becomes a template's
  restored   // in a template's file, of which it gets a private mapping
};

// What a machine begins with.
struct Beginning {
  Memory memory = Memory::own;
  base::Fd file = {};     // of `recorded` for writing too, of `restored` for reading alone
  base::Fd devices = {};  // of `restored`: what record() gave
};

class Vmm {
 public:
  virtual ~Vmm() = default;
  // Starts the machine in `box`, whose cerco-init is ready and whose tap it takes. `base` and
  // `disk` are images.
  [[nodiscard]] virtual base::Result<MachineEnds> boot(const plan::Machine& machine, Container& box,
                                                       const base::Fd& base, const base::Fd& disk,
                                                       const Beginning& beginning) = 0;
  // Of a machine that began as `recorded`, once: stops it and has it write the state of its devices
  // into the pipe whose end comes back. At that pipe's end the memory's file is what belongs to it.
  [[nodiscard]] virtual base::Result<base::Fd> record() = 0;
  // The guest has spoken: from now on nobody commands the VMM. Not before, since QEMU leaves unread
  // what it was told where the teller is gone.
  virtual void leave_alone() = 0;
  // Readable where the VMM may have ended; then ended() says whether it has.
  [[nodiscard]] virtual int watch_fd() const = 0;
  // Why the VMM has ended, with the last that it said; nothing while it runs.
  [[nodiscard]] virtual std::string ended() = 0;
};

[[nodiscard]] std::unique_ptr<Vmm> make_qemu();

}  // namespace sandbox
