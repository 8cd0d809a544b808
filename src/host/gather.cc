// Asks this host what it can give.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "host/host.h"
#include "os/os.h"

namespace host {
namespace {

using plan::HostFacts;

constexpr std::size_t kMostStatus = 16ULL << 10;  // of small files below /proc
constexpr std::size_t kMostMounts = 16ULL << 20;

void kernel_facts(HostFacts& facts) {
  facts.kernel = os::kernel_release();
  std::tie(facts.kernel_major, facts.kernel_minor) = kernel_version(facts.kernel);
  facts.root = os::effective_uid() == 0;
  facts.landlock_abi = os::landlock_abi();
  facts.seccomp = os::has_seccomp_filters();
  facts.time_namespaces = os::may_access("/proc/self/ns/time", os::Access::exists);
  const auto most = os::read_file("/proc/sys/user/max_user_namespaces", 64);
  facts.user_namespaces =
      most && *most != "0\n" && os::may_access("/proc/self/ns/user", os::Access::exists);
  facts.loop_devices = os::may_access("/dev/loop-control", os::Access::write);
  facts.nf_tables = os::has_nf_tables();
  const os::MemorySize memory = os::memory_size();
  facts.size = {os::usable_processors() * 1000ULL, memory.total};
  facts.swap_total = memory.swap;
}

// --- Control groups ------------------------------------------------------------------------------

constexpr std::array<std::string_view, 3> kNeeded = {"memory", "pids", "cpu"};

bool names_all(std::string_view list, std::span<const std::string_view> wanted) {
  while (list.ends_with('\n')) list.remove_suffix(1);
  const auto names = base::split(list, ' ');
  return std::ranges::all_of(
      wanted, [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); });
}

// The nearest group, from the caller's own upward, whose children may have all of these
// controllers. The true root of the hierarchy can always be told to give them to its children.
std::string v2_parent(const Hierarchy& hierarchy, std::span<const std::string_view> wanted) {
  std::string folder = hierarchy.own;
  while (true) {
    const auto given = os::read_file(folder + "/cgroup.subtree_control", 4096);
    if (given && names_all(*given, wanted) && os::may_access(folder, os::Access::write))
      return folder;
    if (folder == hierarchy.mount) break;
    folder.resize(folder.rfind('/'));
  }
  const bool root = !os::may_access(hierarchy.mount + "/cgroup.type", os::Access::exists);
  const auto can = os::read_file(hierarchy.mount + "/cgroup.controllers", 4096);
  const bool gives =
      root && can && names_all(*can, wanted) && os::may_access(hierarchy.mount, os::Access::write);
  return gives ? hierarchy.mount : "";
}

void v2_facts(const Hierarchy& hierarchy, HostFacts& facts) {
  std::vector<std::string_view> wanted;  // what no v1 hierarchy has
  for (std::string_view name : kNeeded) {
    if (!facts.controllers.contains(std::string(name))) wanted.push_back(name);
  }
  std::string parent = wanted.empty() ? "" : v2_parent(hierarchy, wanted);
  for (std::string_view name : wanted) {
    std::string own = parent.empty() ? v2_parent(hierarchy, std::array{name}) : parent;
    if (own.empty()) continue;
    if (parent.empty()) parent = own;  // one folder for all: the first one decides
    if (own == parent) facts.controllers[std::string(name)] = {plan::CgroupKind::v2, own};
  }
  if (parent.empty() && os::may_access(hierarchy.own, os::Access::write)) parent = hierarchy.own;
  if (parent.empty()) return;
  facts.controllers["unified"] = {plan::CgroupKind::v2, parent};
  if (facts.controllers.contains("memory") &&
      facts.controllers["memory"].kind == plan::CgroupKind::v2) {
    // The root has no such file; its children do when the kernel accounts for swap.
    facts.swap_accounting =
        os::may_access(hierarchy.own + "/memory.swap.max", os::Access::exists) ||
        os::may_access(parent + "/memory.swap.max", os::Access::exists);
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

base::Status cgroup_facts(HostFacts& facts) {
  const std::string cgroup = TRY(os::read_file("/proc/self/cgroup", kMostStatus));
  const std::string mounts = TRY(os::read_file("/proc/self/mountinfo", kMostMounts));
  const auto all = hierarchies(cgroup, mounts);
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
    }
  }
  for (const Hierarchy& hierarchy : all) {
    if (hierarchy.kind != plan::CgroupKind::v2) continue;
    cut_memory(hierarchy.own + "/memory.max", facts);
    if (!hierarchy.read_only) v2_facts(hierarchy, facts);
  }
  return {};
}

// --- The base and /etc
// -----------------------------------------------------------------------------

void base_facts(HostFacts& facts) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    const os::PathKind kind = os::path_kind(path);
    if (kind == os::PathKind::folder) facts.base[path] = "dir";
    if (kind != os::PathKind::link) continue;
    if (auto text = os::read_link(path)) facts.base[path] = "link:" + *text;
  }
}

// The file or folder behind a name of /etc, where there is one.
void etc_fact(const std::string& path, HostFacts& facts) {
  const os::PathKind kind = os::path_kind(path);
  if (kind == os::PathKind::none || kind == os::PathKind::other) return;
  if (kind != os::PathKind::link) {
    facts.etc_binds[path] = path;
    return;
  }
  if (auto behind = os::real_path(path)) facts.etc_binds[path] = *behind;
}

base::Status etc_facts(HostFacts& facts) {
  for (const auto& name : TRY(os::list_folder("/etc"))) {
    const std::string path = "/etc/" + name;
    if (plan::is_curated_etc(path)) etc_fact(path, facts);
  }
  if (os::may_access("/etc/ssl/certs/ca-certificates.crt", os::Access::read))
    etc_fact("/etc/ssl/certs", facts);
  for (const char* path : {"/etc/ssl/openssl.cnf", "/etc/maven/m2.conf"}) etc_fact(path, facts);
  return {};
}

// --- What the network side needs -----------------------------------------------------------------

base::Status network_facts(const Caller& caller, HostFacts& facts) {
  if (const auto text = os::read_file("/etc/resolv.conf", kMostStatus))
    facts.resolvers = nameservers(*text);
  if (!caller.ssl_cert_file.empty()) {
    if (!os::may_access(caller.ssl_cert_file, os::Access::read)) {
      return base::bad_input("SSL_CERT_FILE", caller.ssl_cert_file + " cannot be read",
                             "a file with trusted roots");
    }
    facts.roots_file = caller.ssl_cert_file;
    return {};
  }
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (!os::may_access(path, os::Access::read)) continue;
    facts.roots_file = path;
    break;
  }
  return {};
}

}  // namespace

base::Result<HostFacts> gather(const Caller& caller) {
  HostFacts facts;
  facts.state_dir = caller.state_dir;
  facts.helper_dir = caller.helper_dir;
  kernel_facts(facts);
  facts.capabilities = capabilities(TRY(os::read_file("/proc/self/status", kMostStatus)));
  facts.most_files = os::hard_limit_of_files();
  if (facts.capabilities.contains("sys_resource")) {
    const auto most = os::read_file("/proc/sys/fs/nr_open", 64);
    const auto number =
        most ? base::parse_number(std::string_view(*most).substr(0, most->find('\n')))
             : std::nullopt;
    facts.most_files = number.value_or(facts.most_files);
  }
  TRY(cgroup_facts(facts));
  const os::DiskRoom room = TRY(os::disk_room(caller.state_dir));
  facts.state_disk_free = room.free;
  facts.state_disk_total = room.total;
  base_facts(facts);
  TRY(etc_facts(facts));
  TRY(network_facts(caller, facts));
  return facts;
}

}  // namespace host
