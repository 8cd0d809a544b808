// Whether a Plan carries out every protection that its policy asks for.
#include <fmt/format.h>

#include <algorithm>

#include "plan/parts.h"

namespace plan {
namespace {

bool has_namespace(const Plan& plan, std::string_view kind) {
  const auto* step = find_step<CloneNamespaces>(plan);
  return step != nullptr && std::ranges::find(step->kinds, kind) != step->kinds.end();
}

bool masks_proc(const Plan& plan) {
  const auto* proc = find_step<MountProc>(plan);
  return proc != nullptr && std::ranges::find(proc->masks, "/proc/kcore") != proc->masks.end() &&
         std::ranges::find(proc->masks, "/proc/sysrq-trigger") != proc->masks.end() &&
         std::ranges::find(proc->read_only, "/proc/sys") != proc->read_only.end();
}

// Every folder of the base under a layer, on a root that lies on the working disk; or none at all.
bool has_root(const Plan& plan) {
  const auto* root = find_step<MountRoot>(plan);
  const bool scratch = plan.policy.filesystem.root == policy::RootMode::scratch;
  return root != nullptr && (root->store == Store::image) == scratch &&
         (find_step<LayScratch>(plan) != nullptr) == scratch;
}

bool holds_disk(const Plan& plan) {
  const auto* disk = find_step<MountDisk>(plan);
  const bool image = plan.rights == Rights::root && plan.tier != policy::Tier::isolate;
  const Store store = image ? Store::image : Store::memory;
  return disk != nullptr && disk->store == store && disk->size == plan.policy.limits.disk &&
         disk->inodes == plan.policy.limits.inodes && disk->targets == disk_targets_of(plan.tier) &&
         (disk->blocks == Blocks::reserved) == plan.policy.filesystem.reserve;
}

// Whether the plan's steps and limits carry the protection out.
bool carried_out(const Plan& plan, Protection protection) {
  switch (protection) {
    case Protection::cgroup:
      return find_step<EnterCgroup>(plan) != nullptr && !plan.cgroup.groups.empty();
    case Protection::user_namespace: {
      const auto* map = find_step<MapUsers>(plan);
      const std::uint64_t count = plan.rights == Rights::root ? kLeasedUsers : kOwnUser;
      return has_namespace(plan, "user") && map != nullptr && map->count == count;
    }
    case Protection::pid_namespace:
      return has_namespace(plan, "pid");
    case Protection::mount_namespace:
      return has_namespace(plan, "mount") && find_step<MountRoot>(plan) != nullptr;
    case Protection::network_namespace:
      return has_namespace(plan, "network");
    case Protection::ipc_namespace:
      return has_namespace(plan, "ipc");
    case Protection::uts_namespace:
      return has_namespace(plan, "uts") && find_step<SetHostname>(plan) != nullptr;
    case Protection::cgroup_namespace:
      return has_namespace(plan, "cgroup");
    case Protection::time_namespace:
      return has_namespace(plan, "time");
    case Protection::private_proc:
      return find_step<MountProc>(plan) != nullptr;
    case Protection::proc_masks:
      return masks_proc(plan);
    case Protection::minimal_dev:
      return find_step<MountDev>(plan) != nullptr;
    case Protection::pivot_root:
      return find_step<PivotRoot>(plan) != nullptr;
    case Protection::disk_limit:
      return holds_disk(plan);
    case Protection::drop_capabilities:
      return find_step<DropCapabilities>(plan) != nullptr;
    case Protection::no_new_privs:
      return find_step<NoNewPrivs>(plan) != nullptr;
    case Protection::landlock:
      return find_step<Landlock>(plan) != nullptr;
    case Protection::seccomp: {
      const auto* filter = find_step<Seccomp>(plan);
      return filter != nullptr && filter->profile == plan.policy.isolation.seccomp;
    }
    case Protection::rlimits: {
      const auto* limits = find_step<Rlimits>(plan);
      return limits != nullptr && limits->files == plan.policy.limits.files;
    }
    case Protection::capture: {
      const auto* capture = find_step<Capture>(plan);
      return capture != nullptr && *capture == capture_for(plan.policy);
    }
    case Protection::memory_limit:
      return has_setting(plan, "memory", "memory.limit_in_bytes", "memory.max") &&
             has_setting(plan, "memory", "memory.kmem.tcp.limit_in_bytes", "memory.max");
    case Protection::process_limit: {
      const auto* limits = find_step<Rlimits>(plan);
      return has_setting(plan, "pids", "pids.max", "pids.max") ||
             (limits != nullptr && limits->processes != 0 &&
              limits->processes == counted_by_uid(plan));
    }
    case Protection::cpu_limit:
      return has_setting(plan, "cpu", "cpu.cfs_quota_us", "cpu.max");
    case Protection::io_limit:
      return has_setting(plan, "io", "", "io.max");
    case Protection::read_only_base:
      return has_root(plan);
    case Protection::base_as_nobody:
    case Protection::session_keyring:
    case Protection::wall_limit:
    case Protection::processor_time_limit:
    case Protection::name_filter:
    case Protection::address_guard:
    case Protection::sni_check:
    case Protection::strict_http:
    case Protection::upstream_verify:
    case Protection::binding:
    case Protection::redaction:
      return true;  // the flag alone
  }
  return false;
}

}  // namespace

base::Status check_protections(const Plan& plan) {
  for (const Protection protection : required(plan)) {
    if (!plan.protections.contains(protection) || !carried_out(plan, protection)) {
      return refuse(fmt::format("protection {} is missing", to_string(protection)),
                    "every protection that the policy asks for");
    }
  }
  return {};
}

}  // namespace plan
