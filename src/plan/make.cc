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
  const bool root = plan.rights == Rights::root;
  std::vector<Step> steps;
  if (root || !plan.cgroup.groups.empty()) steps.emplace_back(EnterCgroup{});
  const std::vector<Step> first = {
      CloneNamespaces{{"user", "mount", "pid", "network", "ipc", "uts", "cgroup", "time"}},
      MapUsers{root ? kLeasedUsers : kOwnUser}, SetHostname{}, capture_for(plan.policy)};
  steps.insert(steps.end(), first.begin(), first.end());
  std::ranges::move(TRY(tree_steps(plan, host)), std::back_inserter(steps));
  std::vector<std::string> writable = disk_targets_of(plan.tier);
  writable.insert(writable.end(), {"/dev", "/proc"});
  if (plan.policy.filesystem.root == policy::RootMode::scratch) writable = {"/"};
  const bool gvisor = plan.tier == policy::Tier::gvisor;
  steps.emplace_back(PivotRoot{});
  // Under Landlock nobody mounts anything, which runsc has to.
  if (!gvisor) steps.emplace_back(Landlock{{"/"}, std::move(writable)});
  const std::vector<Step> last = {
      DropCapabilities{}, NoNewPrivs{},
      Rlimits{plan.policy.limits.files, counted_by_uid(plan), processors_for(plan)},
      Seccomp{plan.policy.isolation.seccomp}};
  steps.insert(steps.end(), last.begin(), last.end());
  if (gvisor) {
    steps.emplace_back(RunGvisor{host.runsc, host.runsc_release, host.runsc_platform});
  }
  return steps;
}

}  // namespace

base::Result<Plan> make(const Policy& policy, const HostFacts& host, const Ask& ask,
                        const std::function<std::string(std::size_t)>& random) {
  TRY(refuse_unbuilt(policy));
  TRY(check_ask(policy, ask));

  const Rights rights = host.root ? Rights::root : Rights::user;
  const policy::Tier tier = TRY(
      choose_tier(policy, host, ask.session || ask.detached ? Serves::others : Serves::its_caller));
  std::vector<std::string> resolvers = TRY(resolver_list(policy, host));
  if (const auto lacks = lacks_of_tier(tier, policy, host); !lacks.empty()) {
    return std::unexpected(missing(lacks));
  }
  if (tier == policy::Tier::isolate) TRY(refuse_for_isolate(policy, ask.session));
  HeldLimits held = hold_limits(limits_of_host(tier, policy.limits), host);

  Plan plan;
  plan.run = random(kRunId);
  plan.name = ask.name;
  plan.policy = policy;
  plan.policy.limits = limits_for(tier, policy.limits);
  plan.asked = policy.limits;
  if (host.most_files != 0) {
    plan.policy.limits.files = std::min(plan.policy.limits.files, host.most_files);
  }
  if (rights == Rights::user) fit_disk_into_memory(plan.policy.limits, host);
  plan.policy_sha256 = base::sha256(policy::to_json(plan.policy));
  plan.tier = tier;
  plan.rights = rights;
  if (tier == policy::Tier::isolate) plan.engine = engine_text(host.engine);
  plan.unheld = std::move(held.unheld);
  plan.cgroup = std::move(held.cgroup);
  if (tier == policy::Tier::gvisor) make_room_for_gvisor(plan.cgroup);
  if (tier == policy::Tier::microvm) plan.machine = machine_for(plan.policy, host);
  plan.below_advice = below_advice(plan, host.engine);
  plan.protections = required(plan);
  plan.resolvers = std::move(resolvers);
  plan.terminates = policy::terminates(policy);
  plan.state_dir = host.state_dir;
  plan.helper_dir = host.helper_dir;
  plan.placeholders = make_placeholders(policy, random);
  plan.canaries = make_canaries(policy, random);
  plan.steps = TRY(start_steps(plan, host));
  plan.session = ask.session;
  plan.command = {ask.argv, TRY(environment_for(plan, ask.caller_env)),
                  ask.cwd.empty() ? "/workspace" : ask.cwd};
  if (tier == policy::Tier::isolate && !ask.argv.empty()) {
    plan.command.argv.insert(plan.command.argv.begin(), std::string(kEngineStarter));
  }
  return plan;
}

}  // namespace plan
