// `cerco check`: the plan of a run in plain words, and what it could reach, without running
// anything.
#include "cli/cli.h"
#include "cli/invocation.h"

namespace cli {

base::Result<int> check(const World& world, const Parsed& parsed) {
  static constexpr int kBelowAdvice = 1;
  // Without a command it is the policy alone that is asked about.
  const bool asked = !parsed.words.empty() || !parsed.rest.empty();
  const plan::HostFacts host = TRY(host_facts(world));
  const policy::Effective effective = TRY(load_policy(world, parsed, host.size));
  for (const std::string& warning : effective.warnings) {
    print_error(world, "cerco: " + base::printable(warning) + "\n");
  }
  const bool script = effective.policy.isolation.tier == policy::Tier::isolate;
  Invocation invocation;
  if (asked) invocation = TRY(script ? read_script(parsed) : read_invocation(parsed));
  const plan::Plan plan =
      TRY(make_plan(world, effective.policy, host, "", invocation.argv, Kind::one_command));
  print(world, parsed.has("--json") ? plan::to_json(plan) + "\n" : plan::explain(plan));
  if (!parsed.has("--strict")) return 0;
  const auto rest = plan::not_accepted(plan);
  for (const std::string& risk : rest) {
    print_error(world, "cerco: --strict: " + base::printable(risk) +
                           "; name it in isolation.accept, or use a tier that is advised\n");
  }
  return rest.empty() ? 0 : kBelowAdvice;
}

}  // namespace cli
