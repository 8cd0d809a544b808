// What runs left behind whose supervisor was killed.
#include <set>

#include "sandbox/container/rights.h"
#include "sandbox/sandbox.h"

namespace sandbox {

base::Result<std::uint64_t> collect_garbage(const std::string& state_dir,
                                            const plan::HostFacts& host) {
  std::uint64_t removed = TRY(priv::collect_leases(Rights::badge(), state_dir));
  std::set<std::string> parents;
  for (const auto& [name, controller] : host.controllers) parents.insert(controller.path);
  for (const auto& parent : parents) {
    removed += TRY(priv::collect_groups(Rights::badge(), parent));
  }
  return removed;
}

}  // namespace sandbox
