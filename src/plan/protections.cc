// The protections by name: which a policy asks for, and what taking one out takes with it.
#include <algorithm>
#include <array>
#include <type_traits>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::size_t kCount = static_cast<std::size_t>(Protection::last_) + 1;

constexpr std::array<std::string_view, kCount> kNames = {"cgroup",
                                                         "user_namespace",
                                                         "pid_namespace",
                                                         "mount_namespace",
                                                         "network_namespace",
                                                         "ipc_namespace",
                                                         "uts_namespace",
                                                         "cgroup_namespace",
                                                         "time_namespace",
                                                         "read_only_base",
                                                         "base_as_nobody",
                                                         "private_proc",
                                                         "proc_masks",
                                                         "minimal_dev",
                                                         "pivot_root",
                                                         "disk_limit",
                                                         "drop_capabilities",
                                                         "no_new_privs",
                                                         "landlock",
                                                         "seccomp",
                                                         "rlimits",
                                                         "session_keyring",
                                                         "capture",
                                                         "memory_limit",
                                                         "process_limit",
                                                         "cpu_limit",
                                                         "io_limit",
                                                         "wall_limit",
                                                         "processor_time_limit",
                                                         "name_filter",
                                                         "address_guard",
                                                         "sni_check",
                                                         "strict_http",
                                                         "upstream_verify",
                                                         "binding",
                                                         "redaction"};

template <class T>
void remove_step(Plan& plan) {
  std::erase_if(plan.steps, [](const Step& step) { return std::holds_alternative<T>(step); });
}

template <class T, class Change>
void change_step(Plan& plan, Change change) {
  for (Step& step : plan.steps) {
    if (T* held = std::get_if<T>(&step)) change(*held);
  }
}

// Puts a bind of the host's folder where our own mount stood.
template <class T>
void bind_instead(Plan& plan, const std::string& folder) {
  for (Step& step : plan.steps) {
    if (std::holds_alternative<T>(step)) step = BindReadOnly{folder, folder};
  }
}

void remove_namespace(Plan& plan, std::string_view kind) {
  change_step<CloneNamespaces>(plan, [&](CloneNamespaces& step) { std::erase(step.kinds, kind); });
}

void remove_limits(Plan& plan, std::string_view controller) {
  for (auto& group : plan.cgroup.groups) {
    if (group.controller == controller) group.limits.clear();
  }
}

// What is left is the host's own tree: what would be mounted and what Landlock names is not there.
void remove_mounts(Plan& plan) {
  std::erase_if(plan.steps, [](const Step& step) {
    return std::visit(
        []<class T>(const T&) {
          return std::is_same_v<T, MountRoot> || std::is_same_v<T, MakeFolder> ||
                 std::is_same_v<T, MakeLink> || std::is_same_v<T, BindReadOnly> ||
                 std::is_same_v<T, LayScratch> || std::is_same_v<T, WriteFile> ||
                 std::is_same_v<T, TrustBundle> || std::is_same_v<T, MountDisk> ||
                 std::is_same_v<T, MountDev> || std::is_same_v<T, MountCgroups> ||
                 std::is_same_v<T, MountProc> || std::is_same_v<T, PivotRoot>;
        },
        step);
  });
  change_step<Landlock>(plan,
                        [](Landlock& step) { step.write = {"/dev", "/proc", "/tmp", "/var/tmp"}; });
  plan.command.cwd = "/";
}

void enlarge_disk(MountDisk& disk) {
  static constexpr std::uint64_t kTimes = 16;
  disk.size *= kTimes;
  disk.inodes *= kTimes;
}

}  // namespace

std::string_view to_string(Rights rights) {
  return rights == Rights::root ? "root" : "user";
}

std::string_view to_string(Protection protection) {
  return kNames.at(static_cast<std::size_t>(protection));
}

std::optional<Protection> protection_named(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Protection>(found - kNames.begin());
}

std::set<Protection> required(const Plan& plan) {
  std::set<Protection> all;
  for (std::size_t i = 0; i < kCount; ++i) all.insert(static_cast<Protection>(i));
  const policy::Limits& limits = plan.policy.limits;
  const auto unless = [&](Protection protection, std::string_view limit, bool limited) {
    const bool held = std::ranges::find(plan.unheld, limit) == plan.unheld.end();
    if (!limited || !held) all.erase(protection);
  };
  unless(Protection::memory_limit, "memory", limits.memory != policy::kUnlimited);
  unless(Protection::process_limit, "processes", limits.processes != policy::kUnlimited);
  unless(Protection::cpu_limit, "cpus", limits.cpus_milli != policy::kUnlimited);
  unless(Protection::io_limit, "io", limits.io != policy::kUnlimited);
  unless(Protection::wall_limit, "", limits.wall_ms != policy::kUnlimited);
  unless(Protection::processor_time_limit, "cpu", limits.cpu_ms != policy::kUnlimited);
  if (plan.policy.filesystem.root != policy::RootMode::scratch) {
    all.erase(Protection::base_as_nobody);
  }
  // What Landlock names are files of the host's kernel; below gVisor's own nothing reaches one.
  if (plan.tier == policy::Tier::gvisor) all.erase(Protection::landlock);
  // The end of its pid namespace ends every process of a sandbox; a user may have no group to give.
  if (plan.rights == Rights::user && plan.cgroup.groups.empty()) all.erase(Protection::cgroup);
  return all;
}

void take_out(Plan& plan, Protection protection) {
  plan.protections.erase(protection);
  switch (protection) {
    case Protection::cgroup:
      remove_step<MountCgroups>(plan);
      return remove_step<EnterCgroup>(plan);
    case Protection::user_namespace:
      remove_namespace(plan, "user");
      return remove_step<MapUsers>(plan);
    case Protection::pid_namespace:
      return remove_namespace(plan, "pid");
    case Protection::mount_namespace:
      remove_namespace(plan, "mount");
      return remove_mounts(plan);
    case Protection::network_namespace:
      remove_namespace(plan, "network");
      return remove_step<Capture>(plan);
    case Protection::ipc_namespace:
      return remove_namespace(plan, "ipc");
    case Protection::uts_namespace:
      remove_namespace(plan, "uts");
      return remove_step<SetHostname>(plan);
    case Protection::cgroup_namespace:
      return remove_namespace(plan, "cgroup");
    case Protection::time_namespace:
      return remove_namespace(plan, "time");
    case Protection::private_proc:
      return bind_instead<MountProc>(plan, "/proc");
    case Protection::proc_masks:
      return change_step<MountProc>(plan, [](MountProc& step) { step = {}; });
    case Protection::minimal_dev:
      return bind_instead<MountDev>(plan, "/dev");
    case Protection::pivot_root:
      return remove_step<PivotRoot>(plan);
    case Protection::disk_limit:
      return change_step<MountDisk>(plan, enlarge_disk);
    case Protection::drop_capabilities:
      return remove_step<DropCapabilities>(plan);
    case Protection::no_new_privs:
      // Without it the kernel takes no filter from a process that has no capability.
      remove_step<NoNewPrivs>(plan);
      plan.protections.erase(Protection::seccomp);
      return remove_step<Seccomp>(plan);
    case Protection::landlock:
      return remove_step<Landlock>(plan);
    case Protection::seccomp:
      return remove_step<Seccomp>(plan);
    case Protection::rlimits:
      return remove_step<Rlimits>(plan);
    case Protection::capture:
      return remove_step<Capture>(plan);
    case Protection::memory_limit:
      return remove_limits(plan, "memory");
    case Protection::process_limit:
      change_step<Rlimits>(plan, [](Rlimits& step) { step.processes = 0; });
      return remove_limits(plan, "pids");
    case Protection::cpu_limit:
      return remove_limits(plan, "cpu");
    case Protection::io_limit:
      return remove_limits(plan, "io");
    case Protection::wall_limit:
      plan.policy.limits.wall_ms = policy::kUnlimited;
      return;
    case Protection::processor_time_limit:
      plan.policy.limits.cpu_ms = policy::kUnlimited;
      return;
    case Protection::read_only_base:
    case Protection::base_as_nobody:
    case Protection::session_keyring:
    case Protection::name_filter:
    case Protection::address_guard:
    case Protection::sni_check:
    case Protection::strict_http:
    case Protection::upstream_verify:
    case Protection::binding:
    case Protection::redaction:
      return;  // the flag alone
  }
}

}  // namespace plan
