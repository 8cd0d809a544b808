// `cerco policy show`: the effective policy, and where each value comes from.
#include "cli/cli.h"

namespace cli {

base::Result<int> policy_show(const World& world, const Parsed& parsed) {
  TRY(want_words("policy show", parsed, 0, "[POLICY FLAGS]"));
  const plan::HostFacts host = TRY(host_facts(world));
  const policy::Effective effective = TRY(load_policy(world, parsed, host.size));
  for (const std::string& warning : effective.warnings) {
    print_error(world, "cerco: " + base::printable(warning) + "\n");
  }
  print(world,
        parsed.has("--json") ? policy::to_json(effective.policy) + "\n" : policy::show(effective));
  return 0;
}

}  // namespace cli
