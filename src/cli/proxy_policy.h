// What of a policy `cerco proxy` does not carry out, so that nothing of it is weaker in silence.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace cli {

// A key that was written, or given by a flag, and that only whoever isolates the code can hold.
struct LeftKey {
  std::string key;     // "limits.memory"
  std::string origin;  // "policy.toml:3:8", "--set limits.memory=1GiB"
  bool operator==(const LeftKey&) const = default;
};

// In the order of their names. Errors (bad_input): a key that demands what nobody outside of a
// sandbox can give, so that a proxy must not start with it.
[[nodiscard]] base::Result<std::vector<LeftKey>> left_to_others(const policy::Effective& effective);
// The keys as one line for people; "" for none.
[[nodiscard]] std::string left_text(const std::vector<LeftKey>& left);

}  // namespace cli
