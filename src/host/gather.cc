// Asks this host what it can give.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "host/host.h"
#include "os/os.h"

namespace host {
namespace {

using plan::HostFacts;

constexpr std::size_t kMostStatus = 16ULL << 10;  // of small files below /proc
constexpr std::size_t kMostMounts = 16ULL << 20;

bool sysctl_is(const std::string& path, std::string_view wanted) {
  const auto text = os::read_file(path, 64);
  return text && *text == wanted;
}

// Only trying tells what an ordinary user may: sysctls, security modules and an outer container's
// filter decide together.
void own_namespaces(HostFacts& facts) {
  const os::OwnNamespaces tried = os::try_own_namespaces();
  facts.nf_tables = tried.nf_tables;
  switch (tried.reached) {
    case os::OwnNamespaces::Reached::nothing:
      facts.refused = plan::Refused::user_namespace;
      break;
    case os::OwnNamespaces::Reached::user_namespace:
      facts.refused = plan::Refused::namespaces;
      break;
    case os::OwnNamespaces::Reached::namespaces:
      facts.refused = plan::Refused::proc;
      break;
    case os::OwnNamespaces::Reached::proc:
      facts.refused = plan::Refused::nothing;
      break;
  }
}

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
  facts.userns_for_root_alone = sysctl_is("/proc/sys/kernel/unprivileged_userns_clone", "0\n");
  facts.userns_by_profile_alone =
      sysctl_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
  facts.loop_devices = os::may_access("/dev/loop-control", os::Access::write);
  if (facts.root) {
    facts.nf_tables = os::has_nf_tables();
  } else {
    own_namespaces(facts);
  }
  const os::MemorySize memory = os::memory_size();
  facts.size = {os::usable_processors() * 1000ULL, memory.total};
  facts.swap_total = memory.swap;
}

base::Status cgroup_facts(HostFacts& facts) {
  const std::string cgroup = TRY(os::read_file("/proc/self/cgroup", kMostStatus));
  const std::string mounts = TRY(os::read_file("/proc/self/mountinfo", kMostMounts));
  find_controllers(hierarchies(cgroup, mounts), facts);
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

// --- The engine of the isolate tier --------------------------------------------------------------

// Day 0 is 1970-01-01, by the proleptic Gregorian calendar.
std::int64_t day_number(std::string_view eight_digits) {
  const auto part = [&](std::size_t at, std::size_t size) {
    return static_cast<int>(base::parse_number(eight_digits.substr(at, size)).value_or(0));
  };
  const std::chrono::year_month_day day{std::chrono::year(part(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(part(4, 2))),
                                        std::chrono::day(static_cast<unsigned>(part(6, 2)))};
  return day.ok() ? std::chrono::sys_days(day).time_since_epoch().count() : -1;
}

// "1.20261117.1": the version of the npm package names the day.
void engine_age(plan::Engine& engine) {
  const auto parts = base::split(engine.version, '.');
  if (parts.size() < 2 || parts[1].size() != 8) return;
  const std::int64_t built = day_number(parts[1]);
  if (built < 0) return;
  const auto now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
  const std::int64_t today = now.time_since_epoch().count();
  engine.day =
      fmt::format("{}-{}-{}", parts[1].substr(0, 4), parts[1].substr(4, 2), parts[1].substr(6));
  engine.days_old = today > built ? static_cast<std::uint64_t>(today - built) : 0;
}

// A file that a library of that name is, where the distribution has it.
std::string library(const std::string& name) {
#ifdef __aarch64__
  constexpr std::string_view kOwn = "aarch64-linux-gnu";
#else
  constexpr std::string_view kOwn = "x86_64-linux-gnu";
#endif
  for (const std::string& folder :
       {fmt::format("/usr/lib/{}/", kOwn), fmt::format("/lib/{}/", kOwn),
        std::string("/usr/lib64/"), std::string("/lib64/")}) {
    if (os::may_access(folder + name, os::Access::read)) return folder + name;
  }
  return {};
}

void engine_facts(HostFacts& facts) {
  plan::Engine& engine = facts.engine;
  const std::string program = facts.helper_dir + "/engine/workerd";
  const std::string starter = facts.helper_dir + "/cerco-isolate";
  if (os::may_access(starter, os::Access::read))
    engine.files[std::string(plan::kEngineStarter)] = starter;
  if (!os::may_access(program, os::Access::read)) return;
  engine.files[std::string(plan::kEngineProgram)] = program;
  if (const auto text = os::read_file(facts.helper_dir + "/engine/version", 64)) {
    engine.version = text->substr(0, text->find('\n'));
  }
  engine_age(engine);
#ifdef __aarch64__
  engine.files["/lib/ld-linux-aarch64.so.1"] = "/lib/ld-linux-aarch64.so.1";
#else
  engine.files["/lib64/ld-linux-x86-64.so.2"] = "/lib64/ld-linux-x86-64.so.2";
#endif
  for (const char* name :
       {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libgcc_s.so.1"}) {
    const std::string path = library(name);
    if (path.empty()) {
      engine.lacking.emplace_back(name);
    } else {
      engine.files[fmt::format("/lib/{}", name)] = path;
    }
  }
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
  // Rights that a user has in a namespace of its own raise no limit of the host's.
  if (facts.root && facts.capabilities.contains("sys_resource")) {
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
  engine_facts(facts);
  for (const char* path : {"/usr/local/bin/runsc", "/usr/bin/runsc", "/usr/sbin/runsc"}) {
    if (!facts.runsc.empty() || !os::may_access(path, os::Access::read)) continue;
    facts.runsc = path;
  }
  TRY(etc_facts(facts));
  TRY(network_facts(caller, facts));
  return facts;
}

}  // namespace host
