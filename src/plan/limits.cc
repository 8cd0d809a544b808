// How each limit is held on this host: cgroup files of v1 and v2, and the working disk.
#include <fmt/format.h>

#include <algorithm>

#include "plan/parts.h"

namespace plan {
namespace {

using policy::kUnlimited;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::uint64_t kPeriodUs = 100'000;    // the kernel's own default
constexpr std::uint64_t kLeastQuotaUs = 1'000;  // what it takes at least
// v1 counts what sockets queue apart from limits.memory: together they come to a quarter more.
constexpr std::uint64_t kSocketPart = 4;
constexpr std::uint64_t kInit = 1;  // cerco-init is a process of the group, and not the workload's

constexpr std::uint64_t kLeastDisk = 1ULL << 20;
constexpr std::uint64_t kBlock = 4096;

std::string number_or_max(std::uint64_t value) {
  return value == kUnlimited ? "max" : std::to_string(value);
}

Settings memory_settings(const policy::Limits& limits, CgroupKind kind, const HostFacts& host) {
  Settings settings;
  if (limits.memory == kUnlimited) return settings;
  if (kind == CgroupKind::v2) {
    settings.emplace_back("memory.max", std::to_string(limits.memory));
    settings.emplace_back("memory.oom.group", "1");
    if (host.swap_accounting) settings.emplace_back("memory.swap.max", number_or_max(limits.swap));
    return settings;
  }
  settings.emplace_back("memory.limit_in_bytes", std::to_string(limits.memory));
  // Memory and swap together; it may not be below the memory limit, and so is written after it.
  if (host.swap_accounting && limits.swap < kUnlimited - limits.memory) {
    settings.emplace_back("memory.memsw.limit_in_bytes",
                          std::to_string(limits.memory + limits.swap));
  }
  // Of every socket, whatever its file name says: UDP is charged to it as TCP is.
  if (host.socket_accounting) {
    settings.emplace_back("memory.kmem.tcp.limit_in_bytes",
                          std::to_string(limits.memory / kSocketPart));
  }
  return settings;
}

Settings process_settings(const policy::Limits& limits) {
  if (limits.processes == kUnlimited) return {};
  return {{"pids.max", std::to_string(limits.processes + kInit)}};
}

Settings cpu_settings(const policy::Limits& limits, CgroupKind kind) {
  if (limits.cpus_milli == kUnlimited) return {};
  const std::uint64_t quota = std::max(limits.cpus_milli * (kPeriodUs / 1000), kLeastQuotaUs);
  if (kind == CgroupKind::v2) return {{"cpu.max", fmt::format("{} {}", quota, kPeriodUs)}};
  return {{"cpu.cfs_period_us", std::to_string(kPeriodUs)},
          {"cpu.cfs_quota_us", std::to_string(quota)}};
}

class Holder {
 public:
  Holder(const policy::Limits& limits, const HostFacts& host) : limits_(limits), host_(host) {}

  HeldLimits hold() {
    memory();
    // Without the controller a user's own namespace counts them (counted_by_uid).
    controller("pids", "processes", limits_.processes != kUnlimited && host_.root,
               [&](const Controller&) { return process_settings(limits_); });
    controller("cpu", "cpus", limits_.cpus_milli != kUnlimited,
               [&](const Controller& where) { return cpu_settings(limits_, where.kind); });
    io();
    accounting();
    processor_time();
    disk();
    return std::move(held_);
  }

 private:
  // Where the limit cannot be held: a lack, or unheld when the policy lets it be.
  void cannot(std::string_view limit, std::string what, const std::string& remedy) {
    const std::string name(limit);
    if (std::ranges::find(limits_.not_required, name) != limits_.not_required.end()) {
      if (std::ranges::find(held_.unheld, name) == held_.unheld.end()) held_.unheld.push_back(name);
      return;
    }
    held_.lacks.push_back({std::move(what), remedy + ", or name the limit in limits.not_required"});
  }

  template <class SettingsFor>
  void controller(const std::string& name, std::string_view limit, bool limited,
                  SettingsFor settings) {
    const auto found = host_.controllers.find(name);
    if (found == host_.controllers.end()) {
      if (limited) {
        cannot(limit,
               fmt::format("a writable cgroup with the {} controller (limits.{})", name, limit),
               "delegate the controllers to this process's group (v2: move its processes into a "
               "child, then enable them in cgroup.subtree_control)");
      }
      return;
    }
    held_.cgroup.groups.push_back({name, found->second, settings(found->second)});
  }

  void memory() {
    const bool limited = limits_.memory != kUnlimited;
    controller("memory", "memory", limited, [&](const Controller& where) {
      return memory_settings(limits_, where.kind, host_);
    });
    const bool swap_open = limited && limits_.swap != kUnlimited && host_.swap_total > 0 &&
                           !host_.swap_accounting && host_.controllers.contains("memory");
    if (swap_open) {
      cannot("memory", "swap accounting (limits.swap)",
             "boot with swapaccount=1, or turn swap off");
    }
    const auto where = host_.controllers.find("memory");
    const bool sockets_open = limited && where != host_.controllers.end() &&
                              where->second.kind == CgroupKind::v1 && !host_.socket_accounting;
    if (sockets_open) {
      cannot("memory", "accounting of socket memory (memory.kmem.tcp.limit_in_bytes)",
             "use a kernel with CONFIG_MEMCG_KMEM and CONFIG_INET, or cgroup v2");
    }
  }

  // Version 1 throttles only what is written past the page cache, which is next to nothing.
  void io() {
    if (limits_.io == kUnlimited) return;
    const auto found = host_.controllers.find("io");
    if (found == host_.controllers.end() || found->second.kind != CgroupKind::v2) {
      return cannot("io", "a writable cgroup of version 2 with the io controller (limits.io)",
                    "boot with cgroup version 2 alone and delegate io to this process's group");
    }
    if (host_.disks.empty()) {
      return cannot("io",
                    "a disk that can be told apart below the base and the state directory "
                    "(limits.io)",
                    "set CERCO_STATE_DIR to a folder on a block device");
    }
    std::vector<std::string> lines;
    for (const auto& disk : host_.disks) {
      lines.push_back(fmt::format("{} rbps={} wbps={}", disk, limits_.io, limits_.io));
    }
    held_.cgroup.groups.push_back({"io", found->second, {{"io.max", base::join(lines, "\n")}}});
  }

  // Groups without limits: the one by which everything is killed at once, and where that one does
  // not count processor time (every v2 group does, without a controller), one that does.
  void accounting() {
    const auto join = [&](const std::string& name) {
      const auto found = host_.controllers.find(name);
      if (found == host_.controllers.end()) return false;
      held_.cgroup.groups.push_back({name, found->second, {}});
      return true;
    };
    if (join("unified")) return;
    join("cpuacct");
    if (join("freezer") || !host_.root) return;
    held_.lacks.push_back({"a writable cgroup to freeze and kill by (cgroup v2, or the v1 freezer)",
                           "mount a cgroup2 hierarchy that this process may write"});
  }

  // Asked of a group by the supervisor: no group holds it by itself.
  void processor_time() {
    if (limits_.cpu_ms == kUnlimited) return;
    const auto counts = [](const CgroupPlan::Group& group) {
      return group.where.kind == CgroupKind::v2 || group.controller == "cpuacct";
    };
    if (std::ranges::any_of(held_.cgroup.groups, counts)) return;
    cannot("cpu", "a writable cgroup that counts processor time (limits.cpu)",
           "delegate a cgroup (version 2, or cpuacct of version 1) to this process");
  }

  void disk() {
    if (!host_.root) return;  // in memory
    const std::uint64_t kept = kept_for_host(host_.state_disk_total);
    const std::uint64_t free = host_.state_disk_free > kept ? host_.state_disk_free - kept : 0;
    if (free >= limits_.disk) return;
    cannot("disk",
           fmt::format("room for limits.disk: {} has {} free beside what is kept for the host, and "
                       "limits.disk is {}",
                       host_.state_dir, policy::size_text(free), policy::size_text(limits_.disk)),
           "free some, set CERCO_STATE_DIR to a larger disk, lower limits.disk");
  }

  const policy::Limits& limits_;
  const HostFacts& host_;
  HeldLimits held_;
};

}  // namespace

HeldLimits hold_limits(const policy::Limits& limits, const HostFacts& host) {
  return Holder(limits, host).hold();
}

void make_room_for_gvisor(CgroupPlan& cgroup) {
  constexpr std::uint64_t kOwn = 512;
  constexpr std::uint64_t kEach = 3;
  for (auto& group : cgroup.groups) {
    for (auto& [file, text] : group.limits) {
      const auto limit = file == "pids.max" ? base::parse_number(text) : std::nullopt;
      if (limit) text = std::to_string(kOwn + kEach * *limit);
    }
  }
}

void fit_disk_into_memory(policy::Limits& limits, const HostFacts& host) {
  const std::uint64_t memory = limits.memory == kUnlimited ? host.size.memory : limits.memory;
  limits.disk = std::min(limits.disk, std::max(memory / 2, kLeastDisk));
  limits.inodes = std::min(limits.inodes, std::max<std::uint64_t>(limits.disk / kBlock, 1));
}

// The lines that free(1), the JVM, glibc and the like look for. Nothing is used yet when this is
// written, and nobody changes it later: what is free now says memory.current of the own group.
std::string meminfo_for(const Plan& plan, const HostFacts& host) {
  const policy::Limits& limits = plan.policy.limits;
  if (!plan.protections.contains(Protection::memory_limit)) return {};
  const std::uint64_t memory = std::min(limits.memory, host.size.memory) / 1024;
  const std::uint64_t swap = std::min(limits.swap, host.swap_total) / 1024;
  const std::pair<std::string_view, std::uint64_t> lines[] = {
      {"MemTotal:", memory}, {"MemFree:", memory}, {"MemAvailable:", memory},
      {"Buffers:", 0},       {"Cached:", 0},       {"SwapCached:", 0},
      {"Active:", 0},        {"Inactive:", 0},     {"SwapTotal:", swap},
      {"SwapFree:", swap},   {"Dirty:", 0},        {"Writeback:", 0},
      {"AnonPages:", 0},     {"Mapped:", 0},       {"Shmem:", 0},
      {"Slab:", 0},          {"SReclaimable:", 0}, {"SUnreclaim:", 0},
      {"KernelStack:", 0},   {"PageTables:", 0},   {"CommitLimit:", memory + swap},
      {"Committed_AS:", 0}};
  std::string text;
  for (const auto& [name, kib] : lines) text += fmt::format("{:<16}{:>8} kB\n", name, kib);
  return text;
}

std::uint64_t processors_for(const Plan& plan) {
  if (!plan.protections.contains(Protection::cpu_limit)) return 0;
  return (plan.policy.limits.cpus_milli + 999) / 1000;
}

std::uint64_t counted_by_uid(const Plan& plan) {
  const bool held = std::ranges::find(plan.unheld, "processes") == plan.unheld.end();
  const std::uint64_t most = plan.policy.limits.processes;
  if (plan.rights == Rights::root || !held || most == kUnlimited ||
      has_setting(plan, "pids", "pids.max", "pids.max")) {
    return 0;
  }
  return most + kInit;
}

bool has_setting(const Plan& plan, std::string_view controller, std::string_view v1,
                 std::string_view v2) {
  return std::ranges::any_of(plan.cgroup.groups, [&](const CgroupPlan::Group& group) {
    const std::string_view file = group.where.kind == CgroupKind::v1 ? v1 : v2;
    return group.controller == controller &&
           std::ranges::any_of(group.limits,
                               [&](const auto& setting) { return setting.first == file; });
  });
}

}  // namespace plan
