// The one place where a tier is told from another at a start.
#include <fmt/format.h>

#include "sandbox/sandbox.h"

namespace sandbox {

base::Result<std::unique_ptr<Sandbox>> start(const plan::Plan& plan, const Inputs& inputs) {
  switch (plan.tier) {
    // The same start: what is put between cerco-init and the host's kernel is one step of the plan.
    case policy::Tier::container:
    case policy::Tier::gvisor:
      return start_container(plan, inputs);
    case policy::Tier::isolate:
    case policy::Tier::microvm:
      break;
  }
  return base::not_yet(fmt::format("tier {}", policy::to_string(plan.tier)));
}

}  // namespace sandbox
