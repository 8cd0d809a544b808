// The one place where a tier is told from another at a start.
#include <fmt/format.h>

#include "sandbox/sandbox.h"

namespace sandbox {

base::Result<std::unique_ptr<Sandbox>> start(const plan::Plan& plan, const Inputs& inputs) {
  switch (plan.tier) {
    case policy::Tier::container:
      return start_container(plan, inputs);
    case policy::Tier::isolate:
    case policy::Tier::gvisor:
      break;
    case policy::Tier::microvm:
      return start_microvm(plan, inputs);
  }
  return base::not_yet(fmt::format("tier {}", policy::to_string(plan.tier)));
}

}  // namespace sandbox
