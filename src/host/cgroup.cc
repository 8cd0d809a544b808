// Which group of this host can hold which limit.
#include <algorithm>
#include <array>
#include <span>

#include "host/host.h"
#include "os/os.h"

namespace host {
namespace {

using plan::HostFacts;

constexpr std::array<std::string_view, 3> kNeeded = {"memory", "pids", "cpu"};

bool names_all(std::string_view list, std::span<const std::string_view> wanted) {
  while (list.ends_with('\n')) list.remove_suffix(1);
  const auto names = base::split(list, ' ');
  return std::ranges::all_of(
      wanted, [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); });
}

// Whether children of the group may have all of these controllers. The true root of the hierarchy,
// which alone has no type, can always be told to give what it has.
bool hands_down(const Hierarchy& hierarchy, const std::string& folder,
                std::span<const std::string_view> wanted) {
  const bool root =
      folder == hierarchy.mount && !os::may_access(folder + "/cgroup.type", os::Access::exists);
  const auto names =
      os::read_file(folder + (root ? "/cgroup.controllers" : "/cgroup.subtree_control"), 4096);
  return names && names_all(*names, wanted) && os::may_access(folder, os::Access::write);
}

// The nearest group, from the caller's own upward, that hands all of these down; "" where there is
// none.
std::string v2_parent(const Hierarchy& hierarchy, std::span<const std::string_view> wanted) {
  std::string folder = hierarchy.own;
  while (!hands_down(hierarchy, folder, wanted)) {
    if (folder == hierarchy.mount) return {};
    folder.resize(folder.rfind('/'));
  }
  return folder;
}

// One folder for all controllers: where all are to be had, else where the first one is.
std::string v2_folder(const Hierarchy& hierarchy, std::span<const std::string_view> wanted) {
  std::string folder = wanted.empty() ? "" : v2_parent(hierarchy, wanted);
  for (std::size_t i = 0; folder.empty() && i < wanted.size(); ++i) {
    folder = v2_parent(hierarchy, wanted.subspan(i, 1));
  }
  if (folder.empty() && os::may_access(hierarchy.own, os::Access::write)) folder = hierarchy.own;
  return folder;
}

void v2_facts(const Hierarchy& hierarchy, HostFacts& facts) {
  std::vector<std::string_view> wanted;  // what no v1 hierarchy has
  for (std::string_view name : kNeeded) {
    if (!facts.controllers.contains(std::string(name))) wanted.push_back(name);
  }
  const std::string folder = v2_folder(hierarchy, wanted);
  if (folder.empty()) return;
  facts.controllers["unified"] = {plan::CgroupKind::v2, folder};
  wanted.push_back("io");  // where it is there: nothing but limits.io asks for it
  for (std::string_view name : wanted) {
    if (!hands_down(hierarchy, folder, std::array{name})) continue;
    facts.controllers[std::string(name)] = {plan::CgroupKind::v2, folder};
    if (name != "memory") continue;
    // The root has neither file, and its children have both.
    facts.swap_accounting = os::may_access(folder + "/memory.swap.max", os::Access::exists) ||
                            !os::may_access(folder + "/memory.max", os::Access::exists);
  }
}

// What an outer boundary leaves of the memory.
void cut_memory(const std::string& file, HostFacts& facts) {
  auto text = os::read_file(file, 64);
  if (!text) return;
  while (text->ends_with('\n')) text->pop_back();
  const auto limit = base::parse_number(*text);
  if (limit && *limit > 0) facts.size.memory = std::min(facts.size.memory, *limit);
}

}  // namespace

void find_controllers(const std::vector<Hierarchy>& all, HostFacts& facts) {
  for (const Hierarchy& hierarchy : all) {
    if (hierarchy.kind != plan::CgroupKind::v1) continue;
    const bool memory =
        std::ranges::find(hierarchy.controllers, "memory") != hierarchy.controllers.end();
    if (memory) cut_memory(hierarchy.own + "/memory.limit_in_bytes", facts);
    if (hierarchy.read_only || !os::may_access(hierarchy.own, os::Access::write)) continue;
    for (const auto& name : hierarchy.controllers) {
      facts.controllers[name] = {plan::CgroupKind::v1, hierarchy.own};
    }
    if (memory) {
      facts.swap_accounting =
          os::may_access(hierarchy.own + "/memory.memsw.limit_in_bytes", os::Access::exists);
      facts.socket_accounting =
          os::may_access(hierarchy.own + "/memory.kmem.tcp.limit_in_bytes", os::Access::exists);
    }
  }
  for (const Hierarchy& hierarchy : all) {
    if (hierarchy.kind != plan::CgroupKind::v2) continue;
    cut_memory(hierarchy.own + "/memory.max", facts);
    if (!hierarchy.read_only) v2_facts(hierarchy, facts);
  }
}

}  // namespace host
