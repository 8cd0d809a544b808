// `cerco gc`: removes what runs left that ended without their supervisor.
#include "cli/cli.h"
#include "sandbox/sandbox.h"

namespace cli {

base::Result<int> gc(const World& world, const Parsed& parsed) {
  TRY(want_words("gc", parsed, 0, ""));
  const plan::HostFacts host = TRY(host_facts(world));
  const std::uint64_t removed = TRY_IN("gc", sandbox::collect_garbage(world.state_dir, host));
  if (parsed.has("--json")) {
    print(world, base::JsonObject().add("removed", removed).text() + "\n");
  } else {
    print(world, removed == 0 ? std::string("nothing to remove\n")
                              : "removed " + std::to_string(removed) + " cgroups and leases\n");
  }
  return 0;
}

}  // namespace cli
