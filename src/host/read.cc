// Reads the text of /proc and /etc.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "host/host.h"

namespace host {
namespace {

std::vector<std::string_view> words(std::string_view line, std::string_view separators) {
  std::vector<std::string_view> out;
  while (!line.empty()) {
    const auto start = line.find_first_not_of(separators);
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    const auto end = std::min(line.find_first_of(separators), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return out;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool octal = text[i] == '\\' && i + 3 < text.size() &&
                       std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr ==
                           text.data() + i + 4;
    if (octal && code < 256) {
      out.push_back(static_cast<char>(code));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool contains(std::string_view list, std::string_view name) {
  const auto parts = base::split(list, ',');
  return std::ranges::find(parts, name) != parts.end();
}

struct CgroupMount {
  bool v2 = false;
  std::string root;  // the group that the mount shows at its top
  std::string mount;
  std::string options;  // of the superblock: the controllers of v1
  bool read_only = false;
};

// proc(5): id parent major:minor root mount options [optional…] - type source superoptions
std::optional<CgroupMount> cgroup_mount(std::string_view line) {
  const auto fields = words(line, " ");
  const auto dash = std::ranges::find(fields, "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 4) return std::nullopt;
  const std::string_view type = *(dash + 1);
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  return CgroupMount{type == "cgroup2", unescape(fields[3]), unescape(fields[4]),
                     std::string(*(dash + 3)), contains(fields[5], "ro")};
}

// The group's folder below the mount. A group outside of what the mount shows (a cgroup namespace
// was entered without a mount of its own) has none but the mount's top.
std::string own_folder(const CgroupMount& mount, std::string_view group) {
  std::string_view below = group;
  if (mount.root != "/") {
    const bool inside = below.starts_with(mount.root) &&
                        (below.size() == mount.root.size() || below[mount.root.size()] == '/');
    below = inside ? below.substr(mount.root.size()) : "/";
  }
  if (below.find("/..") != std::string_view::npos) below = "/";
  return below.empty() || below == "/" ? mount.mount : mount.mount + std::string(below);
}

struct Membership {
  std::vector<std::string_view> controllers;  // empty for v2
  bool named = false;
  std::string_view path;
};

// cgroups(7): id:controllers:path
std::optional<Membership> membership(std::string_view line) {
  const auto first = line.find(':');
  const auto second = line.find(':', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  Membership member;
  const std::string_view list = line.substr(first + 1, second - first - 1);
  member.named = list.starts_with("name=");
  if (!list.empty()) member.controllers = base::split(list, ',');
  member.path = line.substr(second + 1);
  if (!member.path.starts_with('/')) return std::nullopt;
  return member;
}

constexpr std::array<std::string_view, 41> kCapabilities = {"chown",
                                                            "dac_override",
                                                            "dac_read_search",
                                                            "fowner",
                                                            "fsetid",
                                                            "kill",
                                                            "setgid",
                                                            "setuid",
                                                            "setpcap",
                                                            "linux_immutable",
                                                            "net_bind_service",
                                                            "net_broadcast",
                                                            "net_admin",
                                                            "net_raw",
                                                            "ipc_lock",
                                                            "ipc_owner",
                                                            "sys_module",
                                                            "sys_rawio",
                                                            "sys_chroot",
                                                            "sys_ptrace",
                                                            "sys_pacct",
                                                            "sys_admin",
                                                            "sys_boot",
                                                            "sys_nice",
                                                            "sys_resource",
                                                            "sys_time",
                                                            "sys_tty_config",
                                                            "mknod",
                                                            "lease",
                                                            "audit_write",
                                                            "audit_control",
                                                            "setfcap",
                                                            "mac_override",
                                                            "mac_admin",
                                                            "syslog",
                                                            "wake_alarm",
                                                            "block_suspend",
                                                            "audit_read",
                                                            "perfmon",
                                                            "bpf",
                                                            "checkpoint_restore"};

}  // namespace

std::vector<Hierarchy> hierarchies(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<Membership> members;
  for (std::string_view line : base::split(cgroup, '\n')) {
    if (auto member = membership(line); member && !member->named)
      members.push_back(std::move(*member));
  }
  std::vector<Hierarchy> found;
  for (std::string_view line : base::split(mountinfo, '\n')) {
    // Hosts with many containers have thousands of mounts: most lines end here.
    if (line.find(" - cgroup") == std::string_view::npos) continue;
    const auto mount = cgroup_mount(line);
    if (!mount) continue;
    const auto member = std::ranges::find_if(members, [&](const Membership& candidate) {
      if (mount->v2) return candidate.controllers.empty();
      return !candidate.controllers.empty() &&
             std::ranges::all_of(candidate.controllers, [&](std::string_view name) {
               return contains(mount->options, name);
             });
    });
    if (member == members.end()) continue;
    Hierarchy hierarchy;
    hierarchy.kind = mount->v2 ? plan::CgroupKind::v2 : plan::CgroupKind::v1;
    hierarchy.controllers.assign(member->controllers.begin(), member->controllers.end());
    hierarchy.mount = mount->mount;
    hierarchy.own = own_folder(*mount, member->path);
    hierarchy.read_only = mount->read_only;
    const bool again = std::ranges::any_of(found, [&](const Hierarchy& other) {
      return other.kind == hierarchy.kind && other.controllers == hierarchy.controllers;
    });
    if (!again) found.push_back(std::move(hierarchy));
  }
  return found;
}

std::set<std::string> capabilities(std::string_view status) {
  static constexpr std::string_view kKey = "CapEff:";
  std::set<std::string> names;
  for (std::string_view line : base::split(status, '\n')) {
    if (!line.starts_with(kKey)) continue;
    const auto fields = words(line.substr(kKey.size()), " \t");
    std::uint64_t mask = 0;
    if (fields.size() != 1) return {};
    const auto [end, error] =
        std::from_chars(fields[0].data(), fields[0].data() + fields[0].size(), mask, 16);
    if (error != std::errc() || end != fields[0].data() + fields[0].size()) return {};
    for (unsigned bit = 0; bit < 64; ++bit) {
      if ((mask >> bit & 1) == 0) continue;
      names.insert(bit < kCapabilities.size() ? std::string(kCapabilities.at(bit))
                                              : fmt::format("cap_{}", bit));
    }
  }
  return names;
}

std::pair<unsigned, unsigned> kernel_version(std::string_view release) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return {0, 0};
  const auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc()) return {0, 0};
  return {major, minor};
}

std::vector<std::string> nameservers(std::string_view resolv_conf) {
  std::vector<std::string> list;
  for (std::string_view line : base::split(resolv_conf, '\n')) {
    const auto fields = words(line, " \t\r");
    if (fields.size() >= 2 && fields[0] == "nameserver") list.emplace_back(fields[1]);
  }
  return list;
}

}  // namespace host
