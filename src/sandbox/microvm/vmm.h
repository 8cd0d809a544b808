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

class Vmm {
 public:
  virtual ~Vmm() = default;
  // Starts the machine in `box`, whose cerco-init is ready and whose tap it takes. `base` and
  // `disk` are images.
  [[nodiscard]] virtual base::Result<MachineEnds> boot(const plan::Machine& machine, Container& box,
                                                       const base::Fd& base,
                                                       const base::Fd& disk) = 0;
  // Readable where the VMM may have ended; then ended() says whether it has.
  [[nodiscard]] virtual int watch_fd() const = 0;
  // Why the VMM has ended, with the last that it said; nothing while it runs.
  [[nodiscard]] virtual std::string ended() = 0;
};

[[nodiscard]] std::unique_ptr<Vmm> make_qemu();

}  // namespace sandbox
