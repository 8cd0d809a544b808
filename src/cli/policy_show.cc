// `cerco policy show`: the effective policy, and where each value comes from.
#include "cli/cli.h"
#include "cli/run_policy.h"

namespace cli {

base::Result<int> policy_show(const World& world, const Parsed& parsed) {
  const std::size_t words = parsed.words.empty() ? 0 : 1;
  TRY(want_words("policy show", parsed, words, "[RUN | POLICY FLAGS]"));
  if (words == 1) TRY(want_no_policy_flags(parsed, "policy show RUN"));
  const policy::Effective effective =
      words == 1 ? TRY(effective_of_run(world, parsed.words[0]))
                 : TRY(load_policy(world, parsed, TRY(host_facts(world)).size));
  for (const std::string& warning : effective.warnings) {
    print_error(world, "cerco: " + base::printable(warning) + "\n");
  }
  print(world,
        parsed.has("--json") ? policy::to_json(effective.policy) + "\n" : policy::show(effective));
  return 0;
}

}  // namespace cli
