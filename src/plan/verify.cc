// The supervisor's own check of a Plan that it was handed, before the first privileged act.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::size_t kMostSteps = 4096;
constexpr std::size_t kMostWords = 128ULL << 10;  // of the command, together (MAX_ARG_STRLEN)
constexpr std::size_t kMostFile = 64ULL << 10;    // a written file
constexpr std::uint64_t kLeastDisk = 1ULL << 20;
constexpr std::uint64_t kMostDisk = 16ULL << 40;  // what ext4 with 4 KiB blocks can hold
constexpr std::uint64_t kMostInodes = 1ULL << 32;
constexpr std::uint64_t kMostFiles = 1ULL << 20;  // fs.nr_open
constexpr std::uint64_t kUsers = 65536;           // one lease

std::unexpected<base::Error> refuse(std::string what, std::string expected) {
  return base::bad_input("plan", std::move(what), std::move(expected));
}

template <class T>
const T* find_step(const Plan& plan) {
  for (const Step& step : plan.steps) {
    if (const T* held = std::get_if<T>(&step)) return held;
  }
  return nullptr;
}

bool is_run_id(std::string_view run) {
  return run.size() == 12 && std::ranges::all_of(run, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
         });
}

bool is_label(std::string_view name) {
  const auto alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return name.size() <= 64 && alnum(name[0]) && !is_run_id(name) &&
         std::ranges::all_of(name,
                             [&](char c) { return alnum(c) || c == '_' || c == '.' || c == '-'; });
}

base::Status check_head(const Plan& plan) {
  if (!is_run_id(plan.run))
    return refuse(fmt::format("run id {:?}", plan.run), "12 characters of a-z2-7");
  if (!plan.name.empty() && !is_label(plan.name)) {
    return refuse(fmt::format("name {:?}", plan.name),
                  "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}, and not of the form of a run id");
  }
  TRY(refuse_unbuilt(plan.policy));
  if (plan.tier != policy::Tier::container) {
    return base::not_yet(fmt::format("tier {}", policy::to_string(plan.tier)));
  }
  if (plan.policy_sha256 != base::sha256(policy::to_json(plan.policy))) {
    return refuse("policy_sha256 is not that of its policy", "the plan as make gives it");
  }
  for (const auto* folder : {&plan.state_dir, &plan.helper_dir}) {
    if (!is_clean_path(*folder))
      return refuse(fmt::format("folder {:?}", *folder), "an absolute, clean path");
  }
  if (plan.terminates != terminates_tls(plan.policy)) {
    return refuse("`terminates` does not follow from the policy", "the plan as make gives it");
  }
  return {};
}

base::Status check_unheld(const Plan& plan) {
  const auto& allowed = plan.policy.limits.not_required;
  for (const auto& limit : plan.unheld) {
    if (std::ranges::find(allowed, limit) == allowed.end()) {
      return refuse(fmt::format("limit {:?} is not held", limit),
                    "it is named in limits.not_required");
    }
  }
  return {};
}

// --- Protections ---------------------------------------------------------------------------------

bool has_namespace(const Plan& plan, std::string_view kind) {
  const auto* step = find_step<CloneNamespaces>(plan);
  return step != nullptr && std::ranges::find(step->kinds, kind) != step->kinds.end();
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

bool masks_proc(const Plan& plan) {
  const auto* proc = find_step<MountProc>(plan);
  return proc != nullptr && std::ranges::find(proc->masks, "/proc/kcore") != proc->masks.end() &&
         std::ranges::find(proc->masks, "/proc/sysrq-trigger") != proc->masks.end() &&
         std::ranges::find(proc->read_only, "/proc/sys") != proc->read_only.end();
}

bool holds_disk(const Plan& plan) {
  const auto* disk = find_step<MountDisk>(plan);
  return disk != nullptr && disk->size == plan.policy.limits.disk &&
         disk->inodes == plan.policy.limits.inodes && disk->targets == disk_targets();
}

// Whether the plan's steps and limits carry the protection out.
bool carried_out(const Plan& plan, Protection protection) {
  switch (protection) {
    case Protection::cgroup:
      return find_step<EnterCgroup>(plan) != nullptr && !plan.cgroup.groups.empty();
    case Protection::user_namespace: {
      const auto* map = find_step<MapUsers>(plan);
      return has_namespace(plan, "user") && map != nullptr && map->count == kUsers;
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
      return has_setting(plan, "memory", "memory.limit_in_bytes", "memory.max");
    case Protection::process_limit:
      return has_setting(plan, "pids", "pids.max", "pids.max");
    case Protection::cpu_limit:
      return has_setting(plan, "cpu", "cpu.cfs_quota_us", "cpu.max");
    case Protection::read_only_base:
    case Protection::session_keyring:
    case Protection::wall_limit:
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

base::Status check_protections(const Plan& plan) {
  for (const Protection protection : required(plan.policy, plan.unheld)) {
    if (!plan.protections.contains(protection) || !carried_out(plan, protection)) {
      return refuse(fmt::format("protection {} is missing", to_string(protection)),
                    "every protection that the policy asks for");
    }
  }
  return {};
}

// --- Steps: their order, their paths -----------------------------------------------------------

// Steps of one rank may follow each other in any order; ranks only rise. Each step outside of the
// tree comes once.
int rank(const Step& step) {
  return std::visit(
      []<class T>(const T&) {
        if constexpr (std::is_same_v<T, EnterCgroup>) return 0;
        if constexpr (std::is_same_v<T, CloneNamespaces>) return 1;
        if constexpr (std::is_same_v<T, MapUsers>) return 2;
        if constexpr (std::is_same_v<T, SetHostname>) return 3;
        if constexpr (std::is_same_v<T, Capture>) return 4;
        if constexpr (std::is_same_v<T, MountRoot>) return 5;
        if constexpr (std::is_same_v<T, PivotRoot>) return 7;
        if constexpr (std::is_same_v<T, Landlock>) return 8;
        if constexpr (std::is_same_v<T, DropCapabilities>) return 9;
        if constexpr (std::is_same_v<T, NoNewPrivs>) return 10;
        if constexpr (std::is_same_v<T, Rlimits>) return 11;
        if constexpr (std::is_same_v<T, Seccomp>) return 12;
        return 6;
      },
      step);
}

constexpr int kTreeRank = 6;

base::Status check_order(const Plan& plan) {
  if (plan.steps.size() > kMostSteps)
    return refuse(fmt::format("{} steps", plan.steps.size()), "at most 4096");
  int last = -1;
  for (const Step& step : plan.steps) {
    const int now = rank(step);
    if (now < last || (now == last && now != kTreeRank)) {
      return refuse(fmt::format("step out of order: {}", describe(step)),
                    "the order of the start, each once");
    }
    last = now;
  }
  return {};
}

// Follows how the tree grows, so that nothing is written through a bind into the host.
class TreeCheck {
 public:
  explicit TreeCheck(const Plan& plan) : plan_(plan) {}

  base::Status operator()(const MakeFolder& step) {
    TRY(mode(step.mode, step.target));
    TRY(place(step.target));
    folders_.insert(step.target);
    return {};
  }
  base::Status operator()(const MakeLink& step) {
    if (step.text.empty() || step.text.find('\0') != std::string::npos) {
      return refuse(fmt::format("link {:?} says {:?}", step.target, step.text), "a path");
    }
    return place(step.target);
  }
  base::Status operator()(const BindReadOnly& step) {
    TRY(source(step));
    return place(step.target);
  }
  base::Status operator()(const WriteFile& step) {
    TRY(mode(step.mode, step.target));
    if (step.content.size() > kMostFile)
      return refuse(fmt::format("file {:?}", step.target), "at most 64 KiB");
    return place(step.target);
  }
  base::Status operator()(const TrustBundle& step) {
    if (!plan_.terminates) return refuse("a trust bundle where no TLS is terminated", "none");
    if (step.targets != trust_targets())
      return refuse("trust bundle at other paths", "the known ones");
    return {};
  }
  base::Status operator()(const MountDisk& step) {
    if (step.size < kLeastDisk || step.size > kMostDisk || step.inodes < 1 ||
        step.inodes > kMostInodes) {
      return refuse(fmt::format("working disk of {} bytes and {} inodes", step.size, step.inodes),
                    "1 MiB to 16 TiB, and 1 to 2^32 inodes");
    }
    for (const auto& target : step.targets) {
      TRY(place(target));
      folders_.insert(target);
    }
    return {};
  }
  base::Status operator()(const MountDev&) { return place("/dev"); }
  base::Status operator()(const MountProc& step) {
    for (const auto* list : {&step.masks, &step.read_only}) {
      for (const auto& path : *list) {
        if (!is_clean_path(path) || !path.starts_with("/proc/")) {
          return refuse(fmt::format("mask {:?}", path), "a path below /proc");
        }
      }
    }
    return place("/proc");
  }
  template <class Other>
  base::Status operator()(const Other&) {
    return {};
  }

 private:
  static base::Status mode(std::uint32_t bits, const std::string& target) {
    if (bits <= 0777) return {};
    return refuse(fmt::format("mode {:o} of {:?}", bits, target), "permission bits alone");
  }
  // A new name in a folder that is ours.
  base::Status place(const std::string& target) {
    if (!is_clean_path(target) || target == "/")
      return refuse(fmt::format("path {:?}", target), "an absolute, clean path");
    if (!taken_.insert(target).second)
      return refuse(fmt::format("{:?} is made twice", target), "once");
    const std::string parent = parent_of(target);
    if (parent != "/" && !folders_.contains(parent)) {
      return refuse(fmt::format("{:?} stands in a folder that no step made", target),
                    "a MakeFolder before it");
    }
    return {};
  }
  // A bind brings in the base, a curated piece of /etc, or what the policy names; nothing else.
  base::Status source(const BindReadOnly& step) {
    if (!is_clean_path(step.source))
      return refuse(fmt::format("source {:?}", step.source), "an absolute, clean path");
    const std::string refused = refused_source(step.source, plan_.state_dir);
    if (!refused.empty())
      return refuse(fmt::format("{} may not come in: {}", step.source, refused), "another path");
    static constexpr std::array<std::string_view, 7> kBase = {"/usr",   "/bin",   "/sbin",  "/lib",
                                                              "/lib32", "/lib64", "/libx32"};
    const auto& asked = plan_.policy.filesystem.read_only;
    const bool same = step.source == step.target;
    const bool base = same && std::ranges::find(kBase, step.target) != kBase.end();
    const bool wanted = same && std::ranges::find(asked, step.target) != asked.end();
    const bool etc = is_curated_etc(step.target) && is_within(step.source, "/etc");
    if (base || wanted || etc) return {};
    return refuse(fmt::format("{} is bound to {}", step.source, step.target),
                  "what the policy names");
  }

  const Plan& plan_;
  std::set<std::string> taken_;
  std::set<std::string> folders_;
};

base::Status check_tree(const Plan& plan) {
  TreeCheck check(plan);
  for (const Step& step : plan.steps) TRY(std::visit(check, step));
  const auto* landlock = find_step<Landlock>(plan);
  if (landlock == nullptr) return {};
  for (const auto& path : landlock->write) {
    const bool known = std::ranges::find(disk_targets(), path) != disk_targets().end() ||
                       path == "/dev" || path == "/proc";
    if (!known)
      return refuse(fmt::format("Landlock lets {:?} be written", path),
                    "the working disk, /dev and /proc");
  }
  return {};
}

// --- What runs ---------------------------------------------------------------------------------

base::Status check_command(const Plan& plan) {
  const Command& command = plan.command;
  if (command.argv.empty() || command.argv[0].empty()) return refuse("no command", "one");
  if (!is_clean_path(command.cwd))
    return refuse(fmt::format("working folder {:?}", command.cwd), "an absolute, clean path");
  std::size_t size = 0;
  const auto is_word = [&](std::string_view text) {
    size += text.size() + 1;
    return text.find('\0') == std::string_view::npos;
  };
  bool good = std::ranges::all_of(command.argv, is_word);
  for (const auto& [name, value] : command.env)
    good = good && is_variable_name(name) && is_word(value) && is_word(name);
  if (!good)
    return refuse("the command or its environment holds a NUL byte or a name that is none", "text");
  if (size > 2 * kMostWords)
    return refuse("command and environment are too long", "at most 256 KiB");
  if (plan.policy.limits.files > kMostFiles) {
    return refuse(fmt::format("limits.files {}", plan.policy.limits.files), "at most 1048576");
  }
  return {};
}

base::Status check_placeholders(const Plan& plan) {
  std::set<std::string> seen;
  for (const auto& placeholder : plan.placeholders) {
    static constexpr std::string_view kPrefix = "cerco_ph_";
    const std::string& value = placeholder.value;
    const bool formed = value.starts_with(kPrefix) && value.size() >= kPrefix.size() + 26 &&
                        std::ranges::all_of(value.substr(kPrefix.size()), [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
                        });
    if (!formed || !seen.insert(value).second) {
      return refuse(fmt::format("placeholder of {:?}", placeholder.credential),
                    "cerco_ph_ and 26 random characters");
    }
  }
  for (const auto& credential : plan.policy.credentials) {
    for (const auto& [variable, field] : credential.env) {
      const auto value = plan.command.env.find(variable);
      if (value == plan.command.env.end() || !seen.contains(value->second)) {
        return refuse(fmt::format("{} holds no placeholder", variable),
                      "the placeholder of its credential");
      }
    }
  }
  return {};
}

base::Status check_cgroup(const Plan& plan) {
  static constexpr std::array<std::string_view, 7> kControllers = {
      "memory", "pids", "cpu", "cpuacct", "freezer", "unified", "cpuset"};
  for (const auto& group : plan.cgroup.groups) {
    if (std::ranges::find(kControllers, group.controller) == kControllers.end() ||
        !is_clean_path(group.where.path)) {
      return refuse(fmt::format("cgroup {:?} at {:?}", group.controller, group.where.path),
                    "a known controller");
    }
    const std::string prefix = group.controller + ".";
    for (const auto& [file, text] : group.limits) {
      const bool good = file.starts_with(prefix) && file.find('/') == std::string::npos &&
                        !text.empty() && std::ranges::all_of(text, [](char c) {
                          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == ' ';
                        });
      if (!good)
        return refuse(fmt::format("cgroup file {:?}", file), "a limit of its own controller");
    }
  }
  return {};
}

}  // namespace

base::Status verify(const Plan& plan) {
  TRY(check_head(plan));
  TRY(check_unheld(plan));
  TRY(check_order(plan));
  TRY(check_protections(plan));
  TRY(check_tree(plan));
  TRY(check_command(plan));
  TRY(check_placeholders(plan));
  return check_cgroup(plan);
}

}  // namespace plan
