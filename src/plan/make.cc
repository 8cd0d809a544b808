// From a Policy and the facts of the host to the Plan.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plan/parts.h"

namespace plan {
namespace {

using policy::Policy;

constexpr std::size_t kRunId = 12;

base::Status check_ask(const Policy& policy, const Ask& ask) {
  for (const auto& word : ask.argv) {
    if (word.find('\0') != std::string::npos) {
      return base::bad_input("command", "an argument holds a NUL byte", "text");
    }
  }
  if (!ask.argv.empty() && ask.argv[0].empty()) {
    return base::bad_input("command", "the command is empty", "a program");
  }
  if (!ask.cwd.empty() && !is_clean_path(ask.cwd)) {
    return base::bad_input("working folder", fmt::format("{:?}", ask.cwd),
                           "an absolute path inside");
  }
  const std::pair<std::string_view, std::uint64_t> wanted[] = {
      {"limits.memory", policy.limits.memory},   {"limits.processes", policy.limits.processes},
      {"limits.cpus", policy.limits.cpus_milli}, {"limits.disk", policy.limits.disk},
      {"limits.inodes", policy.limits.inodes},   {"limits.files", policy.limits.files},
      {"limits.wall", policy.limits.wall_ms}};
  for (const auto& [name, value] : wanted) {
    if (value == 0) return base::bad_input(std::string(name), "0", "more than nothing");
  }
  for (const auto& [name, value] : {wanted[3], wanted[4], wanted[5]}) {
    if (value == policy::kUnlimited) {
      return base::bad_input(std::string(name), "\"unlimited\"",
                             "a number: it is made at the start");
    }
  }
  return {};
}

// The steps of the start, in the order of Step.
base::Result<std::vector<Step>> start_steps(const Plan& plan, const HostFacts& host) {
  std::vector<Step> steps = {
      EnterCgroup{},
      CloneNamespaces{{"user", "mount", "pid", "network", "ipc", "uts", "cgroup", "time"}},
      MapUsers{},
      SetHostname{},
      capture_for(plan.policy),
  };
  std::ranges::move(TRY(tree_steps(plan, host)), std::back_inserter(steps));
  std::vector<std::string> writable = disk_targets();
  writable.insert(writable.end(), {"/dev", "/proc"});
  const std::vector<Step> last = {
      PivotRoot{},  Landlock{{"/"}, std::move(writable)}, DropCapabilities{},
      NoNewPrivs{}, Rlimits{plan.policy.limits.files},    Seccomp{plan.policy.isolation.seccomp}};
  steps.insert(steps.end(), last.begin(), last.end());
  return steps;
}

}  // namespace

base::Result<Plan> make(const Policy& policy, const HostFacts& host, const Ask& ask,
                        const std::function<std::string(std::size_t)>& random) {
  TRY(refuse_unbuilt(policy));
  TRY(check_ask(policy, ask));

  HeldLimits held = hold_limits(policy.limits, host);
  std::vector<Lack> lacks = lacks_of_host(host);
  std::ranges::move(held.lacks, std::back_inserter(lacks));
  std::vector<std::string> resolvers = TRY(resolver_list(policy, host));
  if (resolvers.empty() && resolves_names(policy)) {
    lacks.push_back({"a resolver for the names of the egress rules", "set network.resolvers"});
  }
  if (!lacks.empty()) return std::unexpected(missing(lacks));

  Plan plan;
  plan.run = random(kRunId);
  plan.name = ask.name;
  plan.policy = policy;
  if (host.most_files != 0) {
    plan.policy.limits.files = std::min(plan.policy.limits.files, host.most_files);
  }
  plan.policy_sha256 = base::sha256(policy::to_json(plan.policy));
  plan.tier = policy::Tier::container;
  plan.below_advice = below_advice(policy, plan.tier);
  plan.unheld = std::move(held.unheld);
  plan.protections = required(policy, plan.unheld);
  plan.cgroup = std::move(held.cgroup);
  plan.resolvers = std::move(resolvers);
  plan.terminates = policy::terminates(policy);
  plan.state_dir = host.state_dir;
  plan.helper_dir = host.helper_dir;
  plan.placeholders = make_placeholders(policy, random);
  plan.steps = TRY(start_steps(plan, host));
  plan.session = ask.session;
  plan.command = {ask.argv, TRY(environment_for(plan, ask.caller_env)),
                  ask.cwd.empty() ? "/workspace" : ask.cwd};
  return plan;
}

}  // namespace plan
