// Whether a Plan's steps come in a legal order and touch only what they may.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::size_t kMostSteps = 4096;
constexpr std::size_t kMostFile = 64ULL << 10;  // a written file
constexpr std::size_t kMostMeminfo = 4096;
constexpr std::uint64_t kLeastDisk = 1ULL << 20;
constexpr std::uint64_t kMostDisk = 16ULL << 40;  // what ext4 with 4 KiB blocks can hold
constexpr std::uint64_t kMostInodes = 1ULL << 32;

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
        // A plan's own steps are its sandbox's; the tap is its box's.
        if constexpr (std::is_same_v<T, MakeTap>) return -1;
        if constexpr (std::is_same_v<T, MountRoot>) return 5;
        if constexpr (std::is_same_v<T, PivotRoot>) return 7;
        if constexpr (std::is_same_v<T, Landlock>) return 8;
        if constexpr (std::is_same_v<T, DropCapabilities>) return 9;
        if constexpr (std::is_same_v<T, NoNewPrivs>) return 10;
        if constexpr (std::is_same_v<T, Rlimits>) return 11;
        if constexpr (std::is_same_v<T, Seccomp>) return 12;
        if constexpr (std::is_same_v<T, RunGvisor>) return 13;
        return 6;
      },
      step);
}

constexpr int kTreeRank = 6;

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
  base::Status operator()(const LayScratch& step) {
    if (plan_.policy.filesystem.root != policy::RootMode::scratch) {
      return refuse(fmt::format("a layer over {:?}", step.target), "none with a read-only root");
    }
    TRY(base_source(step.source, step.target));
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
  base::Status operator()(const MountCgroups&) {
    TRY(place(std::string(kCgroups)));
    folders_.insert(std::string(kCgroups));
    return {};
  }
  base::Status operator()(const MountDev& step) {
    if (step.terminals > kMostTerminals) {
      return refuse(fmt::format("{} terminals", step.terminals),
                    fmt::format("at most {}", kMostTerminals));
    }
    return place("/dev");
  }
  base::Status operator()(const RunGvisor& step) {
    static constexpr std::array<std::string_view, 2> kPlatforms = {"systrap", "ptrace"};
    if (!is_clean_path(step.program) ||
        std::ranges::find(kPlatforms, step.platform) == kPlatforms.end()) {
      return refuse(fmt::format("runsc {:?} on platform {:?}", step.program, step.platform),
                    "an absolute, clean path, and systrap or ptrace");
    }
    return {};
  }
  base::Status operator()(const MountProc& step) {
    const auto of_proc = [](const std::string& path) {
      return is_clean_path(path) && path.starts_with("/proc/");
    };
    for (const auto& path : step.read_only) {
      if (!of_proc(path)) return refuse(fmt::format("mask {:?}", path), "a path below /proc");
    }
    if (step.meminfo.size() > kMostMeminfo) return refuse("a long /proc/meminfo", "at most 4 KiB");
    std::size_t hidden = 0;
    for (const auto& path : step.masks) {
      if (of_proc(path)) continue;
      if (!may_be_hidden(path, plan_.policy)) {
        return refuse(fmt::format("mask {:?}", path),
                      "a path below /proc or below a path of filesystem.read_only");
      }
      if (++hidden > kMostHidden) return refuse("too many masks", "at most 4096 hidden paths");
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
    const auto& asked = plan_.policy.filesystem.read_only;
    const bool wanted =
        step.source == step.target && std::ranges::find(asked, step.target) != asked.end();
    if (wanted || is_engine_bind(plan_, step)) return clean_source(step.source);
    return base_source(step.source, step.target);
  }
  base::Status clean_source(const std::string& source) {
    if (!is_clean_path(source))
      return refuse(fmt::format("source {:?}", source), "an absolute, clean path");
    const std::string refused = refused_source(source, plan_.state_dir);
    if (!refused.empty())
      return refuse(fmt::format("{} may not come in: {}", source, refused), "another path");
    return {};
  }
  base::Status base_source(const std::string& source, const std::string& target) {
    TRY(clean_source(source));
    static constexpr std::array<std::string_view, 7> kBase = {"/usr",   "/bin",   "/sbin",  "/lib",
                                                              "/lib32", "/lib64", "/libx32"};
    const bool base = source == target && plan_.tier != policy::Tier::isolate &&
                      std::ranges::find(kBase, target) != kBase.end();
    const bool etc = is_curated_etc(target) && is_within(source, "/etc");
    if (base || etc) return {};
    return refuse(fmt::format("{} is bound to {}", source, target), "what the policy names");
  }

  const Plan& plan_;
  std::set<std::string> taken_;
  std::set<std::string> folders_;
};

}  // namespace

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

base::Status check_tree(const Plan& plan) {
  TreeCheck check(plan);
  for (const Step& step : plan.steps) TRY(std::visit(check, step));
  const auto* landlock = find_step<Landlock>(plan);
  if (landlock == nullptr) return {};
  for (const auto& path : landlock->write) {
    const bool scratch = plan.policy.filesystem.root == policy::RootMode::scratch;
    const bool known = std::ranges::find(disk_targets(), path) != disk_targets().end() ||
                       path == "/dev" || path == "/proc" || (path == "/" && scratch);
    if (!known)
      return refuse(fmt::format("Landlock lets {:?} be written", path),
                    "the working disk, /dev and /proc");
  }
  return {};
}

}  // namespace plan
