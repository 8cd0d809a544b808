// The microVM tier's parts of a plan: the machine, the box of its VMM, and what is done in the
// guest.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "plan/parts.h"

namespace plan {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
// Of the guest's memory, beside what limits.memory gives the workload: the kernel itself, its
// tables (a 64th), and our own processes.
constexpr std::uint64_t kGuestOwn = 128 * kMiB;
constexpr std::uint64_t kTablesPart = 64;
// Of the box, beside the guest's memory: the VMM with its translated code.
constexpr std::uint64_t kVmmOwn = 256 * kMiB;
constexpr std::uint64_t kVmmThreads = 64;
constexpr std::uint64_t kVmmFiles = 256;
constexpr std::uint64_t kBoxRoot = 1 * kMiB;
constexpr std::uint64_t kMostMemory = 4ULL << 40;
constexpr std::uint64_t kMostProcessors = 64;
constexpr std::string_view kUnified = "/sys/fs/cgroup";

std::uint64_t guest_memory(std::uint64_t workload) {
  return (workload + workload / kTablesPart + kGuestOwn + kMiB - 1) / kMiB * kMiB;
}

// Inside there is cgroup v2 alone, with every controller, and nobody to share it with.
HostFacts guest_facts(const policy::Limits& limits) {
  HostFacts guest;
  guest.root = true;
  for (const char* name : {"memory", "pids", "cpu", "unified"}) {
    guest.controllers[name] = {CgroupKind::v2, std::string(kUnified)};
  }
  guest.swap_accounting = true;
  guest.state_disk_free = guest.state_disk_total = policy::kUnlimited;
  guest.size.memory = limits.memory;
  return guest;
}

template <class T>
constexpr bool kOfTheBox = std::is_same_v<T, Capture> || std::is_same_v<T, MakeTap>;

// A step as the guest does it; nothing for what was done on the host.
std::optional<Step> in_guest(const Step& step) {
  return std::visit(
      []<class T>(T held) -> std::optional<Step> {
        if constexpr (kOfTheBox<T>) return std::nullopt;
        // Its network is the guest's own, where there is but the card.
        if constexpr (std::is_same_v<T, CloneNamespaces>) std::erase(held.kinds, "network");
        if constexpr (std::is_same_v<T, BindReadOnly>) {
          held.source = std::string(kGuestBase) + held.source;
        }
        if constexpr (std::is_same_v<T, MountDisk>) held.store = Store::device;
        return held;
      },
      step);
}

// Folders above `path`, from the top.
void add_folders(const std::string& path, std::set<std::string>& made, std::vector<Step>& steps) {
  const std::string parent = parent_of(path);
  if (parent == "/" || made.contains(parent)) return;
  add_folders(parent, made, steps);
  steps.emplace_back(MakeFolder{parent});
  made.insert(parent);
}

}  // namespace

std::string_view to_string(Accelerator accelerator) {
  return accelerator == Accelerator::kvm ? "KVM" : "emulated";
}

std::vector<Lack> lacks_of_machine(const policy::Policy& policy, const HostFacts& host) {
  const MachineFacts& facts = host.machine;
  std::vector<Lack> lacks;
  const auto need = [&](bool there, std::string what, std::string remedy) {
    if (!there) lacks.push_back({std::move(what), std::move(remedy)});
  };
  need(host.root, "root, for the tap of a microVM", "run cerco as root");
  need(!facts.vmm.empty(), "QEMU (qemu-system-x86_64)",
       "apt-get install --no-install-recommends qemu-system-x86");
  need(!facts.kernel.empty() && !facts.modules.empty(),
       fmt::format("a guest kernel in {}/guest", host.helper_dir), "run tools/guest-kernel");
  need(facts.tun, "/dev/net/tun", "load the tun module and let /dev/net/tun be seen");
  need(facts.kvm_lack.empty() || policy.isolation.allow_emulation,
       fmt::format("hardware virtualisation ({})", facts.kvm_lack),
       "use a host where /dev/kvm works, or accept emulation, many times slower: "
       "isolation.allow_emulation = true");
  if (policy.filesystem.base.kind == policy::BaseKind::host) {
    need(!facts.base_image.empty(), "an image of this host's base as it is now",
         "run cerco image warm host, or set filesystem.base = \"dir:PATH\"");
  }
  need(policy.limits.memory < kMostMemory, "a memory limit for the machine",
       "set limits.memory to a size");
  need(policy.filesystem.read_only.empty(),
       "paths of the host inside a microVM (filesystem.read_only, --ro): not carried out yet",
       "copy them in with --in");
  return lacks;
}

Machine machine_for(const policy::Policy& policy, const HostFacts& host) {
  const MachineFacts& facts = host.machine;
  Machine machine;
  machine.accelerator = facts.kvm_lack.empty() ? Accelerator::kvm : Accelerator::emulation;
  machine.vmm = facts.vmm;
  machine.files = facts.vmm_files;
  machine.kernel = facts.kernel;
  machine.modules = facts.modules;
  machine.base = facts.base_image;
  machine.memory = guest_memory(policy.limits.memory);
  const std::uint64_t wanted = policy.limits.cpus_milli == policy::kUnlimited
                                   ? host.size.cpus_milli
                                   : policy.limits.cpus_milli;
  machine.processors = std::clamp<std::uint64_t>((wanted + 999) / 1000, 1, kMostProcessors);
  machine.tsc_khz = facts.tsc_khz;
  machine.cgroup = hold_limits(policy.limits, guest_facts(policy.limits)).cgroup;
  return machine;
}

policy::Limits limits_of_box(const policy::Limits& limits) {
  policy::Limits box = limits;
  if (limits.memory != policy::kUnlimited) box.memory = guest_memory(limits.memory) + kVmmOwn;
  box.processes = kVmmThreads;
  return box;
}

base::Status check_machine(const Plan& plan) {
  if (plan.machine.has_value() != (plan.tier == policy::Tier::microvm)) {
    return refuse("a machine and the microVM tier go together", "the plan as make gives it");
  }
  if (!plan.machine) return {};
  const Machine& machine = *plan.machine;
  std::vector<std::string> paths = {machine.vmm, machine.kernel, machine.base};
  for (const auto* more : {&machine.files, &machine.modules}) {
    paths.insert(paths.end(), more->begin(), more->end());
  }
  for (const auto& path : paths) {
    if (!is_clean_path(path)) return refuse(fmt::format("file {:?}", path), "a clean path");
  }
  const bool emulated = machine.accelerator == Accelerator::emulation;
  if (emulated && !plan.policy.isolation.allow_emulation) {
    return refuse("an emulated machine", "isolation.allow_emulation");
  }
  if (machine.memory != guest_memory(plan.policy.limits.memory) || machine.processors < 1 ||
      machine.processors > kMostProcessors) {
    return refuse("a machine of another size", "what limits.memory and limits.cpus come to");
  }
  if (machine.cgroup != hold_limits(plan.policy.limits, guest_facts(plan.policy.limits)).cgroup) {
    return refuse("other groups in the guest", "what the policy's limits come to");
  }
  return {};
}

Plan box_of(const Plan& plan) {
  Plan box = plan;
  box.steps.clear();
  box.session = false;
  box.placeholders.clear();
  box.canaries.clear();
  box.command = {};
  const auto* capture = find_step<Capture>(plan);
  box.steps = {EnterCgroup{},
               CloneNamespaces{{"user", "mount", "pid", "network", "ipc", "uts", "cgroup", "time"}},
               MapUsers{kLeasedUsers}, SetHostname{"vmm"}};
  if (capture != nullptr) box.steps.emplace_back(*capture);
  box.steps.emplace_back(MakeTap{});
  box.steps.emplace_back(MountRoot{kBoxRoot});
  std::set<std::string> made;
  for (const auto& file : plan.machine->files) add_folders(file, made, box.steps);
  for (const auto& file : plan.machine->files) box.steps.emplace_back(BindReadOnly{file, file});
  const std::vector<Step> last = {MountDev{kBoxRoot, Devices::made},
                                  PivotRoot{},
                                  Landlock{{"/"}, {"/dev"}},
                                  DropCapabilities{},
                                  NoNewPrivs{},
                                  Rlimits{kVmmFiles, 0, 0},
                                  Seccomp{}};
  box.steps.insert(box.steps.end(), last.begin(), last.end());
  return box;
}

Plan inside_guest(const Plan& plan) {
  Plan guest;
  guest.run = plan.run;
  guest.policy.limits = plan.policy.limits;
  guest.tier = policy::Tier::container;
  guest.protections = plan.protections;
  if (plan.machine) guest.cgroup = plan.machine->cgroup;
  for (const Step& step : plan.steps) {
    if (auto done = in_guest(step)) guest.steps.push_back(std::move(*done));
  }
  guest.command.cwd = plan.command.cwd;
  guest.session = plan.session;
  guest.terminates = plan.terminates;
  guest.state_dir = kGuestState;
  guest.helper_dir = kGuestState;
  return guest;
}

}  // namespace plan
