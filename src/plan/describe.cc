// Steps, ports and limits in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

#include "plan/parts.h"

namespace plan {
namespace {

// The names are those of the functions that carry the steps out.
struct Line {
  std::string operator()(const EnterCgroup&) const { return "enter_cgroup"; }
  std::string operator()(const CloneNamespaces& step) const {
    return fmt::format("clone_namespaces {}", fmt::join(step.kinds, " "));
  }
  std::string operator()(const MapUsers& step) const {
    if (step.count == kOwnUser) return "map_users 1000 to the caller's own uid, and no other";
    return fmt::format("map_users 0-{} to a leased range of host ids that nothing else has",
                       step.count - 1);
  }
  std::string operator()(const SetHostname& step) const { return "set_hostname " + step.name; }
  std::string operator()(const Capture& step) const {
    if (step.steered.empty()) return "capture names to the gateway, refuse everything else";
    std::vector<std::string> parts;
    for (const Steered& steered : step.steered) {
      parts.push_back(steered.ports.empty()
                          ? steered.cidr
                          : fmt::format("{} port {}", steered.cidr, fmt::join(steered.ports, ",")));
    }
    if (step.steer_public) parts.emplace_back("every public address");
    return fmt::format("capture names and {} to the gateway, refuse everything else",
                       fmt::join(parts, ", "));
  }
  std::string operator()(const MakeTap&) const { return "make_tap to the guest's card"; }
  std::string operator()(const MountRoot& step) const {
    if (step.store != Store::memory) return "mount_root on the working disk, writable";
    return fmt::format("mount_root tmpfs of {}", policy::size_text(step.size));
  }
  std::string operator()(const MakeFolder& step) const { return "make_folder " + step.target; }
  std::string operator()(const MakeLink& step) const {
    return fmt::format("make_link {} -> {}", step.target, step.text);
  }
  std::string operator()(const BindReadOnly& step) const {
    if (step.source == step.target) return "bind_read_only " + step.target;
    return fmt::format("bind_read_only {} from {}", step.target, step.source);
  }
  std::string operator()(const LayScratch& step) const {
    const std::string from = step.source == step.target ? "" : " from " + step.source;
    return fmt::format("lay_scratch over {}{}, of which what everybody may read", step.target,
                       from);
  }
  std::string operator()(const WriteFile& step) const {
    return fmt::format("write_file {} ({} bytes)", step.target, step.content.size());
  }
  std::string operator()(const TrustBundle& step) const {
    return fmt::format("trust_bundle {}", fmt::join(step.targets, " "));
  }
  std::string operator()(const MountDisk& step) const {
    return fmt::format("mount_disk {}{}{} and {} inodes at {}",
                       step.store == Store::memory ? "in memory, " : "",
                       step.blocks == Blocks::reserved ? "reserved, " : "",
                       policy::size_text(step.size), step.inodes, fmt::join(step.targets, " "));
  }
  std::string operator()(const MountDev& step) const {
    return fmt::format("mount_dev null zero full random urandom tty{}, shm of {}, {} terminals",
                       step.devices == Devices::bound ? " of the host" : "",
                       policy::size_text(step.shm_size), step.terminals);
  }
  std::string operator()(const MountProc& step) const {
    return fmt::format("mount_proc own, {} masked, read-only {}{}", step.masks.size(),
                       fmt::join(step.read_only, " "),
                       step.meminfo.empty() ? "" : ", meminfo as limited");
  }
  std::string operator()(const MountCgroups&) const {
    return fmt::format("mount_cgroups its own, read-only, at {}", kCgroups);
  }
  std::string operator()(const PivotRoot&) const { return "pivot_root"; }
  std::string operator()(const Landlock& step) const {
    return fmt::format("landlock read {}, write {}", fmt::join(step.read, " "),
                       fmt::join(step.write, " "));
  }
  std::string operator()(const DropCapabilities&) const { return "drop_capabilities all"; }
  std::string operator()(const NoNewPrivs&) const { return "no_new_privs"; }
  std::string operator()(const Rlimits& step) const {
    const std::string processes =
        step.processes == 0 ? "" : fmt::format("{} processes with init, ", step.processes);
    const std::string processors =
        step.processors == 0 ? "" : fmt::format(", {} processors to be seen", step.processors);
    return fmt::format("rlimits {}{} open files, no core{}", processes, step.files, processors);
  }
  std::string operator()(const Seccomp& step) const {
    return fmt::format("seccomp profile {}", policy::to_string(step.profile));
  }
  std::string operator()(const RunGvisor& step) const {
    return fmt::format("run_gvisor {} (runsc {}), platform {}", step.program, step.release,
                       step.platform);
  }
};

}  // namespace

// The text of a policy may come from anywhere, so that it is made safe for a terminal.
std::string describe(const Step& step) {
  return base::printable(std::visit(Line{}, step));
}

}  // namespace plan
