// The one place where a tier is told from another at a start.
#include <fmt/format.h>

#include "sandbox/sandbox.h"

namespace sandbox {

base::Result<std::unique_ptr<Sandbox>> start(const plan::Plan& plan, const Inputs& inputs) {
  switch (plan.tier) {
    case policy::Tier::container:
    case policy::Tier::isolate:  // a container that holds the engine alone
      return start_container(plan, inputs);
    case policy::Tier::gvisor:
    case policy::Tier::microvm:
      break;
  }
  return base::not_yet(fmt::format("tier {}", policy::to_string(plan.tier)));
}

}  // namespace sandbox
