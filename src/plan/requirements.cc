// What the container tier stands on, and what is not built.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "plan/parts.h"

namespace plan {
namespace {

using policy::Policy;

constexpr unsigned kKernelMajor = 6;
constexpr unsigned kKernelMinor = 1;

// The capabilities that starting a container takes, all in the initial user namespace.
constexpr std::array<std::string_view, 11> kCapabilities = {
    "chown",  "dac_override", "fowner", "kill",      "mknod",           "net_admin",
    "setgid", "setpcap",      "setuid", "sys_admin", "net_bind_service"};

// Why an ordinary user was refused namespaces, and what would do.
void lacking_namespaces(const HostFacts& host, std::vector<Lack>& lacks) {
  if (host.refused == Refused::nothing || !host.user_namespaces) return;
  const std::string_view what = host.refused == Refused::user_namespace
                                    ? "user namespaces for ordinary users"
                                    : "rights in a user namespace of one's own";
  if (host.refused == Refused::proc) {
    lacks.push_back({"a proc file system of one's own (an outer container covers parts of /proc)",
                     "start that container with --security-opt systempaths=unconfined (Docker) or "
                     "--security-opt unmask=ALL (Podman), or run cerco as root outside of it"});
  } else if (host.userns_for_root_alone) {
    lacks.push_back(
        {std::string(what),
         "as root: sysctl -w kernel.unprivileged_userns_clone=1, or run cerco as root"});
  } else if (host.userns_by_profile_alone) {
    lacks.push_back(
        {fmt::format("{} (AppArmor restricts them)", what),
         fmt::format("as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, "
                     "or an AppArmor profile for {}/cerco with the rule `userns,`, or "
                     "run cerco as root",
                     host.helper_dir)});
  } else {
    lacks.push_back({fmt::format("{} (a seccomp filter, a security module or a limit "
                                 "user.max_*_namespaces of an outer container refuses them)",
                                 what),
                     "start that container with --security-opt seccomp=unconfined, or run cerco as "
                     "root outside of it"});
  }
}

void lacking_rights(const HostFacts& host, std::vector<Lack>& lacks) {
  if (!host.root) return lacking_namespaces(host, lacks);
  std::vector<std::string> gone;
  for (std::string_view name : kCapabilities) {
    if (!host.capabilities.contains(std::string(name))) {
      gone.push_back(fmt::format("CAP_{}", name));
      std::ranges::transform(gone.back(), gone.back().begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
      });
    }
  }
  if (gone.empty()) return;
  lacks.push_back({base::join(gone, ", "),
                   "give root these capabilities in the outer container "
                   "(docker run --cap-add, or --privileged)"});
}

void lacking_features(const HostFacts& host, std::vector<Lack>& lacks) {
  const bool old =
      std::pair(host.kernel_major, host.kernel_minor) < std::pair(kKernelMajor, kKernelMinor);
  if (old) {
    lacks.push_back({fmt::format("a kernel from 6.1 on (this is {})",
                                 host.kernel.empty() ? "unknown" : host.kernel),
                     "boot Linux 6.1 or later"});
  }
  const std::array<std::pair<bool, Lack>, 6> features = {{
      {host.landlock_abi > 0,
       {"Landlock", "boot with landlock in the lsm= list (CONFIG_SECURITY_LANDLOCK)"}},
      {host.seccomp, {"seccomp filters", "use a kernel with CONFIG_SECCOMP_FILTER"}},
      {host.user_namespaces,
       {"user namespaces",
        "as root: sysctl -w user.max_user_namespaces=15000 (a kernel with CONFIG_USER_NS)"}},
      {host.time_namespaces, {"time namespaces", "use a kernel with CONFIG_TIME_NS"}},
      // A user who is refused namespaces cannot ask.
      {host.nf_tables || (!host.root && host.refused != Refused::nothing),
       {"nf_tables", "load nf_tables and nft_tproxy on the host (modprobe nf_tables nft_tproxy)"}},
      {host.loop_devices || !host.root,
       {"loop devices", "load the loop module and let /dev/loop-control and /dev/loop* be seen"}},
  }};
  for (const auto& [there, lack] : features) {
    if (!there) lacks.push_back(lack);
  }
  const auto usr = host.base.find("/usr");
  if (usr == host.base.end() || usr->second != "dir") {
    lacks.push_back({"a host folder /usr for the base", "run on a distribution with /usr"});
  }
  if (host.helper_dir.empty()) {
    lacks.push_back(
        {"cerco's own programs (cerco-init and the others)", "install them beside cerco"});
  }
}

}  // namespace

std::vector<Lack> lacks_of_host(const HostFacts& host) {
  std::vector<Lack> lacks;
  lacking_rights(host, lacks);
  lacking_features(host, lacks);
  return lacks;
}

std::vector<Lack> lacks_of_files(policy::Tier tier, const policy::Filesystem& files,
                                 const HostFacts& host) {
  std::vector<Lack> lacks;
  const auto need = [&](bool there, std::string what, std::string remedy) {
    if (!there) lacks.push_back({std::move(what), std::move(remedy)});
  };
  if (files.root == policy::RootMode::scratch) {
    const std::string scratch = "filesystem.root = \"scratch\"";
    need(tier == policy::Tier::container,
         fmt::format("{} in tier {}: not carried out yet", scratch, policy::to_string(tier)),
         "set isolation.tier = \"container\"");
    need(host.root,
         fmt::format("root's rights, which {} takes (the kernel lets no user lend the host's files "
                     "to others)",
                     scratch),
         "run cerco as root, or install into the home (pip install, npm install -g)");
    need(host.overlays, fmt::format("overlayfs, which {} takes", scratch),
         "load the overlay module on the host (modprobe overlay)");
    need(!host.base_stacked,
         fmt::format("a /usr that is no overlay itself, as in an outer container ({})", scratch),
         "run cerco outside of that container, or give it a volume as /usr");
  }
  if (files.reserve) {
    const bool serves = tier == policy::Tier::container || tier == policy::Tier::gvisor;
    need(serves,
         fmt::format("filesystem.reserve = true in tier {}: not carried out yet",
                     policy::to_string(tier)),
         "set isolation.tier = \"container\"");
    need(host.root, "a disk of its own to reserve (filesystem.reserve; a user's lies in memory)",
         "run cerco as root");
  }
  return lacks;
}

base::Status refuse_unbuilt(const Policy& policy) {
  const policy::Filesystem& files = policy.filesystem;
  const bool machine = policy.isolation.tier == policy::Tier::microvm;
  const std::array<std::pair<bool, std::string_view>, 3> unbuilt = {{
      {files.base.kind == policy::BaseKind::image, "filesystem.base = \"image:NAME\""},
      {files.base.kind == policy::BaseKind::dir && !machine,
       "filesystem.base = \"dir:PATH\" in a tier other than microvm"},
      {files.workdir.mode != policy::WorkdirMode::empty,
       "filesystem.workdir other than mode = \"empty\""},
  }};
  for (const auto& [asked, name] : unbuilt) {
    if (asked) return base::not_yet(std::string(name));
  }
  return {};
}

base::Error missing(const std::vector<Lack>& lacks) {
  std::vector<std::string> whats;
  std::vector<std::string> remedies;
  for (const Lack& lack : lacks) {
    whats.push_back(lack.what);
    if (!lack.remedy.empty() && std::ranges::find(remedies, lack.remedy) == remedies.end()) {
      remedies.push_back(lack.remedy);
    }
  }
  return {base::Kind::missing, 0, "host", "missing " + base::join(whats, "; "),
          base::join(remedies, "; ")};
}

}  // namespace plan
