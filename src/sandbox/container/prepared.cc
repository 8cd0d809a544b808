// What is worked out before a sandbox's first process exists.
#include "sandbox/container/prepared.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>

#include "priv/veth.h"

namespace sandbox {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kLeastRoot = 1 << 20;

struct Space {
  std::string_view name;
  std::uint64_t flag;
};
constexpr std::array<Space, 6> kSpaces = {{{"mount", CLONE_NEWNS},
                                           {"pid", CLONE_NEWPID},
                                           {"network", CLONE_NEWNET},
                                           {"ipc", CLONE_NEWIPC},
                                           {"uts", CLONE_NEWUTS},
                                           {"cgroup", CLONE_NEWCGROUP}}};

// What a plan says of rights must be so: root's own uid is never mapped into a sandbox, and a user
// has no other to map.
base::Status check_rights(const plan::Plan& plan) {
  const bool root = priv::own_ids().uid == 0;
  const auto* map = plan::step_of<plan::MapUsers>(plan);
  const bool one = map != nullptr && map->count == 1;
  const bool as_user = plan.rights == plan::Rights::user;
  if (root != as_user && (map == nullptr || one == as_user)) return {};
  return base::bad_input("MapUsers",
                         fmt::format("a plan for {} is started by {}", plan::to_string(plan.rights),
                                     root ? "root" : "a user"),
                         "a plan that was made with the rights of who starts it");
}

base::Status take_kinds(const std::vector<std::string>& kinds, Prepared& prepared) {
  const bool own = prepared.plan->rights == plan::Rights::user;
  for (const auto& kind : kinds) {
    const auto* space = std::ranges::find(kSpaces, kind, &Space::name);
    if (kind == "user") {
      (own ? prepared.own_space : prepared.user_space) = true;
    } else if (kind == "time") {
      prepared.clocks = true;
    } else if (space != kSpaces.end()) {
      prepared.spaces |= space->flag;
    } else {
      return base::bad_input("CloneNamespaces", "unknown namespace " + kind, {});
    }
  }
  return {};
}

template <std::size_t N>
base::Status take_address(std::string_view text, std::array<std::uint8_t, N>& into) {
  const policy::Address address = TRY_IN("Capture", policy::parse_address(text));
  if (address.v6 != (N == 16)) return base::bad_input("Capture", std::string(text), {});
  std::copy_n(address.bytes.begin(), N, into.begin());
  return {};
}

base::Status take_capture(const plan::Capture& capture, bool guest, Prepared& prepared) {
  if ((prepared.spaces & CLONE_NEWNET) == 0) {
    return base::bad_input("Capture", "no network namespace", "CloneNamespaces with network");
  }
  prepared.network.guest = guest;
  TRY(take_address(capture.own_v4, prepared.network.own4));
  TRY(take_address(capture.own_v6, prepared.network.own6));
  TRY(take_address(plan::kProxyAddress, prepared.network.gateway4));
  TRY(take_address(plan::kGateway6, prepared.network.gateway6));
  prepared.interface = prepared.gvisor == nullptr ? priv::interface_messages(prepared.network)
                                                  : priv::capturing_messages(prepared.network);
  prepared.rules =
      priv::capture_rules(prepared.network, TRY(steered_ranges(capture)),
                          capture.steer_public ? priv::Public::steered : priv::Public::refused);
  return {};
}

// Behind a tap the plan's own addresses are the guest's.
base::Status take_tap(Prepared& prepared) {
  if ((prepared.spaces & CLONE_NEWNET) == 0 || prepared.rules.empty()) {
    return base::bad_input("MakeTap", "a tap that nothing catches", "Capture before it");
  }
  prepared.interface = priv::lonely_interface_messages();
  prepared.tap = priv::tap_messages(prepared.network);
  return {};
}

// A root on the disk needs one that the starter makes, and ids that files of the host can be lent
// to.
base::Status take_layers(const plan::MountRoot& root, Prepared& prepared) {
  prepared.scratch = root.store != plan::Store::memory;
  const auto* disk = plan::step_of<plan::MountDisk>(*prepared.plan);
  const bool fits = root.store == plan::Store::image && disk != nullptr &&
                    disk->store == plan::Store::image && !prepared.own_space;
  if (prepared.scratch && !fits) {
    return base::bad_input("MountRoot", "a root on a disk that there is not", "a disk in an image");
  }
  for (const plan::Step& step : prepared.plan->steps) {
    if (!std::holds_alternative<plan::LayScratch>(step)) continue;
    if (!prepared.scratch) {
      return base::bad_input("LayScratch", "a layer beside a root in memory", "none");
    }
    const std::size_t number = prepared.layers.size();
    prepared.layers.push_back({fmt::format("over-{}", number), fmt::format("work-{}", number)});
  }
  return {};
}

std::string size_option(std::uint64_t size) {
  return std::to_string((std::max(size, kLeastRoot) + kPage - 1) / kPage * kPage);
}

// "/home/agent" → "home-agent". /tmp and /var/tmp are for everyone, as they are everywhere.
DiskFolder disk_folder(const std::string& target) {
  DiskFolder folder = {target.substr(1), target, 0755};
  std::ranges::replace(folder.name, '/', '-');
  if (target == "/tmp" || target == "/var/tmp") folder.mode = 01777;
  return folder;
}

// Where tools look for them: version 2 is the whole of /sys/fs/cgroup, beside version 1 it is
// `unified` there.
std::vector<ShownGroup> shown_groups(const plan::Plan& plan) {
  const auto is_v1 = [](const plan::CgroupPlan::Group& group) {
    return group.where.kind == plan::CgroupKind::v1;
  };
  const bool mixed = std::ranges::any_of(plan.cgroup.groups, is_v1);
  std::vector<ShownGroup> shown;
  for (const auto& group : plan.cgroup.groups) {
    std::string target = kCgroups;
    if (mixed) target += "/" + (is_v1(group) ? group.controller : "unified");
    if (std::ranges::find(shown, target, &ShownGroup::target) != shown.end()) continue;
    shown.push_back({group.where.path + "/" + std::string(priv::kGroupPrefix) + plan.run, target});
  }
  return shown;
}

}  // namespace

base::Result<std::vector<priv::SteeredRange>> steered_ranges(const plan::Capture& capture) {
  std::vector<priv::SteeredRange> all;
  for (const auto& steered : capture.steered) {
    const policy::Cidr cidr = TRY_IN("Capture", policy::parse_cidr(steered.cidr));
    priv::SteeredRange range;
    range.v6 = cidr.address.v6;
    range.prefix = cidr.address.bytes;
    range.bits = cidr.bits;
    range.ports = steered.ports;
    all.push_back(std::move(range));
  }
  return all;
}

base::Result<Prepared> prepare(const plan::Plan& plan, const Inputs& inputs) {
  Prepared prepared;
  prepared.plan = &plan;
  prepared.inputs = &inputs;
  prepared.workload = kWorkload;
  TRY(check_rights(plan));
  prepared.gvisor = plan::step_of<plan::RunGvisor>(plan);
  prepared.enters_cgroup = plan::step_of<plan::EnterCgroup>(plan) != nullptr;
  if (const auto* clone = plan::step_of<plan::CloneNamespaces>(plan)) {
    TRY(take_kinds(clone->kinds, prepared));
  }
  const bool space = prepared.user_space || prepared.own_space;
  if (space != (plan::step_of<plan::MapUsers>(plan) != nullptr)) {
    return base::bad_input("MapUsers", "a user namespace and its map go together", {});
  }
  if (const auto* capture = plan::step_of<plan::Capture>(plan))
    TRY(take_capture(*capture, plan::step_of<plan::MakeTap>(plan) != nullptr, prepared));
  if (plan::step_of<plan::MakeTap>(plan) != nullptr) TRY(take_tap(prepared));
  if (const auto* root = plan::step_of<plan::MountRoot>(plan)) {
    if ((prepared.spaces & CLONE_NEWNS) == 0) {
      return base::bad_input("MountRoot", "no mount namespace", "CloneNamespaces with mount");
    }
    TRY(take_layers(*root, prepared));
    prepared.root_size = size_option(root->size + 2 * inputs.trust_bundle.size());  // and for Java
  }
  if (const auto* dev = plan::step_of<plan::MountDev>(plan)) {
    prepared.shm_size = size_option(dev->shm_size);
    prepared.terminals = std::to_string(dev->terminals);
  }
  if (plan::step_of<plan::MountCgroups>(plan) != nullptr) {
    prepared.shown_groups = shown_groups(plan);
  }
  prepared.disk = plan::step_of<plan::MountDisk>(plan);
  if (prepared.disk != nullptr && !prepared.disk_from_outside()) {
    prepared.disk_size = size_option(prepared.disk->size);
    prepared.disk_inodes = std::to_string(prepared.disk->inodes);
  }
  if (prepared.own_space) prepared.caller = priv::own_ids();
  if (prepared.disk != nullptr) {
    for (const auto& target : prepared.disk->targets) {
      if (!target.starts_with('/')) return base::bad_input("MountDisk", target, "an absolute path");
      prepared.disk_folders.push_back(disk_folder(target));
    }
  }
  return prepared;
}

std::vector<priv::GroupSpec> group_specs(const plan::Plan& plan) {
  std::vector<priv::GroupSpec> specs;
  for (const auto& group : plan.cgroup.groups) {
    const bool v2 = group.where.kind == plan::CgroupKind::v2;
    specs.push_back({v2 ? priv::Hierarchy::v2 : priv::Hierarchy::v1, group.controller,
                     group.where.path, group.limits});
  }
  return specs;
}

}  // namespace sandbox
