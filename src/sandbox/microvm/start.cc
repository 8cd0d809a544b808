// The start of a microVM: a machine, from its template where there is one, and the sandbox inside.
#include "sandbox/microvm/boot.h"
#include "sandbox/microvm/microvm.h"
#include "sandbox/microvm/template.h"

namespace sandbox {

namespace {

constexpr std::size_t kEntropy = 128;

// What makes the guest one of its own goes with the plan: no copy of a template gets further
// without it.
base::Status launch(const plan::Plan& plan, const Inputs& inputs, const MachineEnds& ends) {
  const os::Instant now = os::wall_time();
  GuestLaunch launch;
  launch.plan = base::encode(plan::inside_guest(plan));
  launch.trust_bundle = inputs.trust_bundle;
  launch.entropy = base::random_base32(kEntropy);
  launch.seconds = static_cast<std::uint64_t>(now.seconds);
  launch.nanoseconds = static_cast<std::uint64_t>(now.nanoseconds);
  const std::string bytes = base::encode(launch);
  const std::uint64_t size = bytes.size();
  TRY(write_whole(ends.watch.get(), record_bytes(size), kBootMs));
  return write_whole(ends.watch.get(), bytes, kBootMs);
}

// A machine that waits for its launch.
base::Result<Booted> begin(const plan::Plan& plan, const Inputs& inputs) {
  auto kept = TRY_IN("template", find_template(plan, inputs));
  if (kept) {
    return TRY_IN("template", restore(plan, inputs, *kept));
  }
  Booted machine = TRY(boot_machine(plan, inputs, {}));
  TRY(await(machine, GuestSays::up));
  return machine;
}

}  // namespace

base::Result<std::unique_ptr<Sandbox>> start_microvm(const plan::Plan& plan, const Inputs& inputs) {
  if (!plan.machine) return base::bad_input("plan", "no machine", {});
  Booted machine = TRY(begin(plan, inputs));
  TRY(launch(plan, inputs, machine.ends));
  TRY(await(machine, GuestSays::started));
  machine.vmm->leave_alone();
  const int control = machine.ends.control.get();
  tunnel::Started tunnel = TRY(tunnel::start(plan.helper_dir + "/cerco-tunnel", control, control));
  return std::make_unique<MicroVm>(std::move(machine.box), std::move(machine.vmm),
                                   std::move(machine.ends.watch), std::move(tunnel));
}

}  // namespace sandbox
