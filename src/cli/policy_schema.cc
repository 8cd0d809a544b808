// `cerco policy schema`: the JSON Schema of the policy, for editors and programs.
#include "policy/schema.h"

#include "cli/cli.h"

namespace cli {

base::Result<int> policy_schema(const World& world, const Parsed& parsed) {
  TRY(want_words("policy schema", parsed, 0, ""));
  print(world, policy::schema() + "\n");
  return 0;
}

}  // namespace cli
