// From one revision of the policy to the next, without a moment between them.
#include "gateway/change.h"

#include <algorithm>
#include <array>

#include "gateway/credentials.h"
#include "gateway/target.h"

namespace gateway {
namespace {

bool same_target(const policy::Egress& one, const policy::Egress& other) {
  return one.host == other.host && one.tcp == other.tcp && one.cidr == other.cidr;
}

bool same_reach(const policy::Egress& one, const policy::Egress& other) {
  return same_target(one, other) && one.ports == other.ports && one.methods == other.methods &&
         one.paths == other.paths;
}

// A rule is the same one if it has its name and target, or else its whole reach: rules without a
// name of their own are named by their place.
std::vector<std::shared_ptr<Used>> carry_over(const PastRules& past, const policy::Policy& now) {
  std::vector<std::shared_ptr<Used>> all = Core::make_used(now);
  const auto& before = past.policy.egress;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const policy::Egress& rule = now.egress[i];
    auto found = std::ranges::find_if(before, [&](const policy::Egress& old) {
      return old.name == rule.name && same_target(old, rule);
    });
    if (found == before.end()) {
      found = std::ranges::find_if(
          before, [&](const policy::Egress& old) { return same_reach(old, rule); });
    }
    if (found != before.end()) all[i] = past.used[static_cast<std::size_t>(found - before.begin())];
  }
  return all;
}

// The verdict that it would get now.
policy::Verdict judge_again(const Core& core, const Carrying& carried) {
  return carried.treatment == policy::Treatment::tunnel
             ? policy::decide_connection(core.policy(), carried.request)
             : policy::decide_request(core.policy(), carried.request);
}

bool address_passes(const Core& core, const Connection& connection, const policy::Request& request,
                    const policy::Verdict& verdict) {
  if (!connection.upstream || !connection.dialled) return true;
  const std::array<policy::Address, 1> address = {*connection.dialled};
  const auto vetted = core.guard.vet(rule_of(core, verdict), request.host, request.port, address);
  return vetted && !vetted->passed.empty();
}

bool bound_by(const policy::Policy& policy, const std::string& name,
              const policy::Request& request) {
  const auto found = std::ranges::find(policy.credentials, name, &policy::Credential::name);
  return found != policy.credentials.end() && policy::covers(*found, request);
}

// Whether a secret that went out with it may no longer go there.
bool unbound(const Core& core, const Connection& connection, const policy::Request& request) {
  if (!core.holds(plan::Protection::binding)) return false;
  return std::ranges::any_of(connection.credentials, [&](const std::string& name) {
    return bound_by(core.past.back().policy, name, request) &&
           !bound_by(core.policy(), name, request);
  });
}

// A tunnel that would have to be looked into now is as forbidden as one to another host.
bool still_allowed(const Core& core, const Connection& connection, const Carrying& carried) {
  if (carried.treatment == policy::Treatment::refuse) return true;  // it is being refused
  if (unbound(core, connection, carried.request)) return false;
  if (!core.holds(plan::Protection::name_filter)) return true;
  const policy::Verdict verdict = judge_again(core, carried);
  if (!verdict.allow) return false;
  const bool opaque = carried.treatment == policy::Treatment::tunnel;
  if (opaque && verdict.treatment != policy::Treatment::tunnel) return false;
  return address_passes(core, connection, carried.request, verdict);
}

}  // namespace

void put_in_force(Core& core, plan::Plan& plan, plan::Plan next) {
  // Moved, not copied: rules that connections refer to stay where they are.
  core.past.push_back({.policy = std::move(plan.policy), .used = std::move(core.used)});
  plan = std::move(next);
  core.used = carry_over(core.past.back(), plan.policy);
  core.recorder.change_policy(plan.policy.revision);
  for (const std::string& name : plan.retired) {
    core.credentials.revoke(name);
    stop_users(core, name);
  }
  std::vector<Connection*> ended;
  for (Connection* connection : core.connections) {
    if (connection->carried.empty()) {
      // What is kept open for a next request was dialled as the old rules said.
      if (connection->upstream) connection->upstream->close();
    } else if (!std::ranges::all_of(connection->carried, [&](const Carrying* carried) {
                 return still_allowed(core, *connection, *carried);
               })) {
      ended.push_back(connection);
    }
  }
  revoke_all(core, ended);
}

}  // namespace gateway
