// What `cerco doctor --canary` plants, runs and looks at: a secret that must be found where it
// belongs, and nowhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace cli {

// One thing that was tried.
struct CanaryFinding {
  std::string name;
  bool good = false;
  std::string what;  // where it is not good: what was seen
  bool operator==(const CanaryFinding&) const = default;
};

struct CanaryPlan {
  std::string secret;
  std::string folder;      // on the host, of the planted files; comes in read-only
  std::string outside;     // on the host, a planted file that does not come in
  std::uint16_t port = 0;  // of the host's loopback, where the secret belongs
};

// `policy` with the canary as its only credential, for host.cerco.internal at the plan's port, and
// the planted folder. The rules of others for that name are left out.
[[nodiscard]] policy::Policy canary_policy(policy::Policy policy, const CanaryPlan& plan);
// What runs inside: a script for bash, which says in lines what it could get at.
[[nodiscard]] std::string canary_script(const CanaryPlan& plan);

// What came of it.
struct CanarySeen {
  int status = 0;                     // of the run
  std::string inside;                 // what the script wrote
  std::vector<std::string> requests;  // that came to the port, as bytes
  std::string journal;                // of the run, all of it
  bool verified = false;              // its chain and signatures are right
};
[[nodiscard]] std::vector<CanaryFinding> canary_findings(const CanaryPlan& plan,
                                                         const CanarySeen& seen);

}  // namespace cli
