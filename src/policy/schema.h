// The published JSON Schema of a policy, from the readers that parse one.
#pragma once

#include <string>

namespace policy {

// JSON Schema (draft 2020-12) of the policy's tree, as JSON: every key, and what its value is. What
// it accepts the parser may still refuse: names, addresses and what rules say together are not said
// in a schema. Keys that are known and not built accept nothing.
[[nodiscard]] std::string schema();

}  // namespace policy
