// `cerco gc`: removes what runs left that ended without their supervisor.
#include "cli/cli.h"
#include "sandbox/sandbox.h"
#include "supervisor/run_folder.h"

namespace cli {

base::Result<int> gc(const World& world, const Parsed& parsed) {
  TRY(want_words("gc", parsed, 0, ""));
  const plan::HostFacts host = TRY(host_facts(world));
  const std::uint64_t removed = TRY_IN("gc", sandbox::collect_garbage(world.state_dir, host));
  std::uint64_t settled = 0;
  for (const std::string& id : TRY(run_ids(world))) {
    if (TRY_IN("gc", supervisor::settle_lost_run(world.state_dir, id, kVersion))) ++settled;
  }
  if (parsed.has("--json")) {
    print(world, base::JsonObject().add("removed", removed).add("settled", settled).text() + "\n");
  } else {
    print(world, removed == 0 ? std::string("nothing to remove\n")
                              : "removed " + std::to_string(removed) + " cgroups and leases\n");
    if (settled > 0) {
      print(world, "reported " + std::to_string(settled) + " runs whose supervisor was killed\n");
    }
  }
  return 0;
}

}  // namespace cli
