// The one place where a tier is told from another at a start.
#include "sandbox/sandbox.h"

namespace sandbox {

base::Result<std::unique_ptr<Sandbox>> start(const plan::Plan& plan, const Inputs& inputs) {
  switch (plan.tier) {
    // The same start: what is put between cerco-init and the host's kernel is one step of the plan.
    case policy::Tier::container:
    case policy::Tier::gvisor:
    case policy::Tier::isolate:  // a container that holds the engine alone
      return start_container(plan, inputs);
    case policy::Tier::microvm:
      return start_microvm(plan, inputs);
  }
  return base::bad_input("plan", "a tier that is none", {});
}

}  // namespace sandbox
