// The file tree that the command sees: a read-only base of the host, a written /etc, one working
// disk.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::uint64_t kRootSize = 4ULL << 20;  // mount points, /etc and the trust bundle
constexpr std::uint64_t kShmWhenUnlimited = 64ULL << 20;
constexpr std::string_view kLink = "link:";

// What tells of the host, leaks addresses or reaches into the kernel; read and write are covered.
std::vector<std::string> proc_masks() {
  return {"/proc/acpi",          "/proc/bootconfig",  "/proc/cmdline",    "/proc/interrupts",
          "/proc/kallsyms",      "/proc/kcore",       "/proc/key-users",  "/proc/keys",
          "/proc/kmsg",          "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
          "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",       "/proc/sysrq-trigger",
          "/proc/timer_list",    "/proc/vmcore"};
}

std::vector<std::string> proc_read_only() {
  return {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"};
}

// Collects steps by kind, so that they come out in the order of the start.
class Tree {
 public:
  void folder(const std::string& path) {
    if (path == "/" || has_folder(path)) return;
    folder(parent_of(path));
    (on_disk(path) ? disk_folders_ : folders_).push_back(MakeFolder{path});
    known_.insert(path);
  }
  void link(const std::string& at, std::string text) {
    folder(parent_of(at));
    links_.push_back(MakeLink{at, std::move(text)});
  }
  void bind(std::string source, const std::string& target) {
    folder(parent_of(target));
    (on_disk(target) ? disk_binds_ : binds_).push_back(BindReadOnly{std::move(source), target});
    bound_.push_back(target);
  }
  // What the base is made of.
  void base(policy::RootMode root, std::string source, const std::string& target) {
    if (root == policy::RootMode::read_only) return bind(std::move(source), target);
    folder(parent_of(target));
    binds_.push_back(LayScratch{std::move(source), target});
    bound_.push_back(target);
  }
  void file(const std::string& path, std::string content) {
    folder(parent_of(path));
    if (on_disk(path)) {
      disk_files_.push_back(WriteFile{path, std::move(content), kCanaryMode});
      return;
    }
    files_.push_back(WriteFile{path, std::move(content)});
  }
  [[nodiscard]] bool is_bound(std::string_view path) const {
    return std::ranges::any_of(bound_, [&](const auto& target) { return is_within(path, target); });
  }

  [[nodiscard]] std::vector<Step> take(const Plan& plan, const HostFacts& host,
                                       std::uint64_t shm_size) && {
    const bool scratch = plan.policy.filesystem.root == policy::RootMode::scratch;
    std::vector<Step> steps = {MountRoot{kRootSize, scratch ? Store::image : Store::memory}};
    const auto append = [&](std::vector<Step>& more) {
      std::ranges::move(more, std::back_inserter(steps));
    };
    append(folders_);
    append(links_);
    append(binds_);
    append(files_);
    if (plan.terminates) steps.emplace_back(TrustBundle{trust_targets()});
    const bool root = plan.rights == Rights::root;
    const bool isolate = plan.tier == policy::Tier::isolate;
    steps.emplace_back(
        MountDisk{plan.policy.limits.disk, plan.policy.limits.inodes, disk_targets_of(plan.tier),
                  root && !isolate ? Store::image : Store::memory,
                  plan.policy.filesystem.reserve ? Blocks::reserved : Blocks::as_written});
    append(disk_folders_);
    append(disk_binds_);
    append(disk_files_);
    steps.emplace_back(MountDev{shm_size, root ? Devices::made : Devices::bound});
    if (!plan.cgroup.groups.empty() && !isolate) steps.emplace_back(MountCgroups{});
    steps.emplace_back(MountProc{proc_masks(), proc_read_only(), meminfo_for(plan, host)});
    return steps;
  }

 private:
  [[nodiscard]] static bool on_disk(std::string_view path) {
    return std::ranges::any_of(disk_targets(), [&](const auto& target) {
      return path != target && is_within(path, target);
    });
  }
  [[nodiscard]] bool has_folder(const std::string& path) const {
    return known_.contains(path) ||
           std::ranges::find(disk_targets(), path) != disk_targets().end() ||
           std::ranges::find(bound_, path) != bound_.end();
  }

  std::set<std::string> known_;
  std::vector<std::string> bound_;
  std::vector<Step> folders_, links_, binds_, files_, disk_folders_, disk_binds_, disk_files_;
};

void add_base(const Plan& plan, const HostFacts& host, Tree& tree) {
  for (const auto& [path, what] : host.base) {
    if (what == "dir") {
      tree.base(plan.policy.filesystem.root, path, path);
    } else if (what.starts_with(kLink)) {
      tree.link(path, what.substr(kLink.size()));
    }
  }
}

void add_trust_places(const Plan& plan, Tree& tree) {
  if (!plan.terminates) return;
  for (const auto& target : trust_targets()) {
    if (!tree.is_bound(target)) tree.folder(parent_of(target));
  }
}

void add_etc(const Plan& plan, const HostFacts& host, Tree& tree) {
  for (const auto& [target, source] : host.etc_binds) {
    if (!is_curated_etc(target)) continue;
    if (is_within(source, "/usr")) {
      tree.link(target, source);  // it is inside already
    } else {
      tree.base(plan.policy.filesystem.root, source, target);
    }
  }
  for (auto& [path, content] : etc_files(plan.run)) tree.file(path, content);
  tree.link("/etc/mtab", "/proc/self/mounts");
  tree.folder("/run");
  tree.link("/var/run", "/run");
  for (const auto& target : disk_targets()) tree.folder(parent_of(target));
  add_trust_places(plan, tree);
}

// The engine, its libraries, and what it looks names and authorities up in.
void add_engine(const Plan& plan, const HostFacts& host, Tree& tree) {
  for (const auto& [target, source] : host.engine.files) tree.bind(source, target);
  const auto files = etc_files(plan.run);
  for (const char* path : {"/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf"}) {
    tree.file(path, files.at(path));
  }
  const auto certs = host.etc_binds.find("/etc/ssl/certs");
  const bool reaches = !plan.policy.egress.empty() || policy::reaches_beyond_rules(plan.policy);
  if (reaches && certs != host.etc_binds.end()) tree.bind(certs->second, certs->first);
  add_trust_places(plan, tree);
}

// Where the caller's own paths may not stand: what cerco builds there itself.
base::Status check_read_only(const std::string& path, const Plan& plan) {
  const std::string where = "filesystem.read_only";
  if (!is_clean_path(path)) {
    return base::bad_input(where, fmt::format("{:?}", path),
                           "an absolute path without links, \".\" and \"..\"");
  }
  const std::string refused = refused_source(path, plan.state_dir);
  if (!refused.empty()) {
    return base::bad_input(where, fmt::format("{} may not come in: {}", path, refused),
                           "another path");
  }
  static constexpr std::array<std::string_view, 4> kOurs = {"/proc", "/dev", "/sys", "/etc"};
  const auto covers = [&](std::string_view ours) {
    return is_within(ours, path) || (ours != "/etc" && is_within(path, ours));
  };
  const bool ours = std::ranges::any_of(kOurs, covers) ||
                    std::ranges::any_of(disk_targets(), [&](const auto& target) {
                      return is_within(target, path);
                    });
  if (ours) {
    return base::bad_input(where,
                           fmt::format("{} would cover what the sandbox has there itself", path),
                           "a path below it");
  }
  return {};
}

base::Status add_read_only(const Plan& plan, const HostFacts& host, Tree& tree) {
  std::vector<std::string> paths = plan.policy.filesystem.read_only;
  std::ranges::sort(paths);  // a folder before what lies in it
  const auto files = etc_files(plan.run);
  for (const auto& path : paths) {
    TRY(check_read_only(path, plan));
    if (tree.is_bound(path)) continue;
    const bool written = files.contains(path) || path == "/etc/mtab" || host.base.contains(path) ||
                         host.etc_binds.contains(path);
    if (written) {
      return base::bad_input("filesystem.read_only",
                             fmt::format("{} is there already, made by cerco", path),
                             "another path");
    }
    tree.bind(path, path);
  }
  return {};
}

}  // namespace

const std::vector<std::string>& disk_targets() {
  static const std::vector<std::string> kTargets = {"/home/agent", "/tmp", "/var/tmp",
                                                    "/workspace"};
  return kTargets;
}

std::vector<std::string> disk_targets_of(policy::Tier tier) {
  if (tier == policy::Tier::isolate) return {"/workspace"};
  return disk_targets();
}

base::Result<std::vector<Step>> tree_steps(const Plan& plan, const HostFacts& host) {
  Tree tree;
  if (plan.tier == policy::Tier::isolate) {
    add_engine(plan, host, tree);
  } else {
    add_base(plan, host, tree);
    add_etc(plan, host, tree);
    TRY(add_read_only(plan, host, tree));
    for (auto& [path, content] : canary_files(plan.canaries)) tree.file(path, content);
    if (!plan.cgroup.groups.empty()) tree.folder(parent_of(kCgroups));
  }
  const std::uint64_t memory = plan.policy.limits.memory == policy::kUnlimited
                                   ? host.size.memory
                                   : plan.policy.limits.memory;
  return std::move(tree).take(plan, host, memory == 0 ? kShmWhenUnlimited : memory / 2);
}

bool may_be_hidden(std::string_view path, const policy::Policy& policy) {
  return is_clean_path(path) &&
         std::ranges::any_of(policy.filesystem.read_only, [&](const auto& folder) {
           return path != folder && is_within(path, folder);
         });
}

base::Status hide(Plan& plan, const std::vector<std::string>& paths) {
  static constexpr std::string_view kWhere = "filesystem.hide";
  if (paths.size() > kMostHidden) {
    return base::bad_input(std::string(kWhere),
                           fmt::format("{} files below filesystem.read_only match", paths.size()),
                           fmt::format("at most {}; bring in narrower folders", kMostHidden));
  }
  for (const auto& path : paths) {
    if (may_be_hidden(path, plan.policy)) continue;
    return base::bad_input(std::string(kWhere), fmt::format("{:?} cannot be covered", path),
                           "a name without control characters, of at most 4095 bytes");
  }
  for (Step& step : plan.steps) {
    auto* proc = std::get_if<MountProc>(&step);
    if (proc != nullptr) proc->masks.insert(proc->masks.end(), paths.begin(), paths.end());
  }
  return {};
}

std::vector<std::string> hidden(const Plan& plan) {
  std::vector<std::string> paths;
  for (const Step& step : plan.steps) {
    const auto* proc = std::get_if<MountProc>(&step);
    if (proc == nullptr) continue;
    std::ranges::copy_if(proc->masks, std::back_inserter(paths),
                         [](const auto& path) { return !is_within(path, "/proc"); });
  }
  return paths;
}

}  // namespace plan
