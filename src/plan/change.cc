// What may change in a sandbox that runs, and what it comes to.
#include <fmt/format.h>

#include <algorithm>

#include "plan/parts.h"

namespace plan {
namespace {

using policy::Policy;

constexpr const char* kNewRun = "expected what it was started with; start a new run";

// Key paths as differences() gives them.
bool may_change(std::string_view key) {
  static constexpr std::string_view kLive[] = {"network.default", "network.mode", "egress", "deny",
                                               "credential"};
  return key.starts_with("alerts.") || std::ranges::find(kLive, key) != std::end(kLive);
}

std::unexpected<base::Error> fixed(std::string where, std::string what) {
  return base::bad_input(std::move(where), std::move(what), kNewRun);
}

bool is_retired(const Plan& plan, const std::string& name) {
  return std::ranges::find(plan.retired, name) != plan.retired.end();
}

// The same but for where it may be used.
bool same_but_reach(policy::Credential one, const policy::Credential& other) {
  one.hosts = other.hosts;
  one.ports = other.ports;
  one.methods = other.methods;
  one.paths = other.paths;
  return one == other;
}

// Whoever writes the same limits again means those that were fitted to the host then.
Policy fitted(const Plan& running, Policy wanted) {
  const policy::Limits& asked = running.asked;
  const policy::Limits& held = running.policy.limits;
  policy::Limits& limits = wanted.limits;
  if (limits.files == asked.files) limits.files = held.files;
  if (limits.disk == asked.disk) limits.disk = held.disk;
  if (limits.inodes == asked.inodes) limits.inodes = held.inodes;
  return wanted;
}

// Takes over the reach of each; what is left out is retired.
base::Status change_credentials(const Policy& wanted, Plan& next) {
  auto& held = next.policy.credentials;
  for (std::size_t i = 0; i < wanted.credentials.size(); ++i) {
    const policy::Credential& credential = wanted.credentials[i];
    const std::string where = fmt::format("credential[{}]", i);
    const auto found = std::ranges::find(held, credential.name, &policy::Credential::name);
    if (found == held.end()) {
      return fixed(where, "its secret cannot come into a running sandbox's broker");
    }
    if (is_retired(next, credential.name)) {
      return fixed(where, "it was revoked when a change left it out");
    }
    if (!same_but_reach(*found, credential)) {
      return fixed(where, "only hosts, ports, methods and paths can change in a running sandbox");
    }
    // A vendor narrowed its keys to the binding that they were minted for.
    if (credential.source.mint.kind != policy::MintKind::none && *found != credential) {
      return fixed(where, "the reach of keys that are minted cannot change");
    }
    *found = credential;
  }
  for (const policy::Credential& credential : held) {
    const bool kept = std::ranges::find(wanted.credentials, credential.name,
                                        &policy::Credential::name) != wanted.credentials.end();
    if (!kept && !is_retired(next, credential.name)) next.retired.push_back(credential.name);
  }
  return {};
}

// The rule, denial or binding for which TLS would have to be ended.
std::string first_that_terminates(const Policy& wanted) {
  for (std::size_t i = 0; i < wanted.egress.size(); ++i) {
    const policy::Egress& rule = wanted.egress[i];
    const bool ends = !rule.host.empty() && std::ranges::any_of(rule.ports, [&](auto port) {
      return policy::needs_inspection(wanted, rule.host, port);
    });
    if (ends) return fmt::format("egress[{}]", i);
  }
  return "deny";
}

}  // namespace

base::Result<Plan> change(const Plan& running, const Policy& wanted) {
  for (const std::string& key : policy::differences(in_force(running), fitted(running, wanted))) {
    if (!may_change(key)) return fixed(key, "it cannot change in a running sandbox");
  }
  Plan next = running;
  TRY(change_credentials(wanted, next));
  if (policy::terminates(wanted) && !running.terminates) {
    return fixed(first_that_terminates(wanted),
                 "the gateway would have to look into TLS, and this sandbox trusts no authority of "
                 "its own");
  }
  ++next.policy.revision;
  next.policy.network = wanted.network;
  next.policy.alerts = wanted.alerts;
  next.policy.egress = wanted.egress;
  next.policy.deny = wanted.deny;
  next.policy_sha256 = base::sha256(policy::to_json(in_force(next)));
  for (Step& step : next.steps) {
    auto* capture = std::get_if<Capture>(&step);
    if (capture == nullptr) continue;
    const Capture fresh = capture_for(next.policy);
    capture->steered = fresh.steered;
    capture->steer_public = fresh.steer_public;
  }
  return next;
}

Policy in_force(const Plan& plan) {
  Policy policy = plan.policy;
  std::erase_if(policy.credentials, [&](const policy::Credential& credential) {
    return is_retired(plan, credential.name);
  });
  return policy;
}

}  // namespace plan
