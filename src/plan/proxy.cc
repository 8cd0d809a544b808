// A plan without steps.
#include "plan/proxy.h"

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::size_t kRunId = 12;

}  // namespace

base::Result<Plan> make_proxy(const policy::Policy& policy, const HostFacts& host,
                              const std::function<std::string(std::size_t)>& random) {
  if (!policy.filesystem.canaries.empty()) {
    return base::bad_input("filesystem.canaries", "a proxy has no sandbox to plant them in",
                           "none, or cerco run");
  }
  Plan plan;
  plan.run = random(kRunId);
  plan.policy = policy;
  plan.policy.limits.wall_ms = policy::kUnlimited;  // it ends when it is told to
  plan.asked = plan.policy.limits;
  plan.policy_sha256 = base::sha256(policy::to_json(plan.policy));
  plan.rights = host.root ? Rights::root : Rights::user;
  plan.protections = {Protection::name_filter, Protection::address_guard,   Protection::sni_check,
                      Protection::strict_http, Protection::upstream_verify, Protection::binding,
                      Protection::redaction};
  plan.resolvers = TRY(resolver_list(policy, host));
  plan.terminates = policy::terminates(policy);
  plan.state_dir = host.state_dir;
  plan.helper_dir = host.helper_dir;
  plan.placeholders = make_placeholders(policy, random);
  return plan;
}

}  // namespace plan
