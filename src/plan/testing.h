// A host and policies for the tests of whatever takes a Plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace plan::testing {

// A Debian 12 host that lacks nothing: v1 controllers with a controllerless v2 hierarchy beside
// them.
inline HostFacts host() {
  HostFacts facts;
  facts.kernel = "6.1.0-13-amd64";
  facts.kernel_major = 6;
  facts.kernel_minor = 1;
  facts.root = true;
  facts.capabilities = {"chown",  "dac_override", "fowner",          "kill",
                        "mknod",  "net_admin",    "setgid",          "setpcap",
                        "setuid", "sys_admin",    "net_bind_service"};
  facts.landlock_abi = 2;
  facts.seccomp = true;
  facts.user_namespaces = true;
  facts.time_namespaces = true;
  facts.loop_devices = true;
  facts.nf_tables = true;
  for (const char* name : {"memory", "pids", "cpu", "cpuacct", "freezer"}) {
    facts.controllers[name] = {CgroupKind::v1, std::string("/sys/fs/cgroup/") + name};
  }
  facts.controllers["unified"] = {CgroupKind::v2, "/sys/fs/cgroup/unified"};
  facts.size = {4000, 8ULL << 30};
  facts.swap_accounting = true;
  facts.socket_accounting = true;
  facts.state_disk_free = 64ULL << 30;
  facts.state_disk_total = 100ULL << 30;
  facts.state_dir = "/var/lib/cerco";
  facts.resolvers = {"192.0.2.53"};
  facts.roots_file = "/etc/ssl/certs/ca-certificates.crt";
  facts.helper_dir = "/opt/cerco";
  facts.base = {{"/usr", "dir"},
                {"/bin", "link:usr/bin"},
                {"/sbin", "link:usr/sbin"},
                {"/lib", "link:usr/lib"},
                {"/lib64", "link:usr/lib64"}};
  facts.etc_binds = {{"/etc/ld.so.cache", "/etc/ld.so.cache"},
                     {"/etc/alternatives", "/etc/alternatives"},
                     {"/etc/ssl/certs", "/etc/ssl/certs"},
                     {"/etc/localtime", "/usr/share/zoneinfo/Etc/UTC"}};
  return facts;
}

// The same, where limits.io can be held and a scratch root be laid.
inline HostFacts storage_host() {
  HostFacts facts = host();
  facts.controllers["io"] = {CgroupKind::v2, "/sys/fs/cgroup/unified"};
  facts.disks = {"8:0", "259:1"};
  facts.overlays = true;
  return facts;
}

// The same with gVisor's runsc.
inline HostFacts gvisor_host() {
  HostFacts facts = host();
  facts.runsc = "/usr/bin/runsc";
  facts.runsc_release = "0.0~20221219.0";
  facts.runsc_platform = "ptrace";
  return facts;
}

// The same as an ordinary user sees it: nothing is delegated, nothing may be mounted outside.
inline HostFacts user_host() {
  HostFacts facts = host();
  facts.root = false;
  facts.capabilities.clear();
  facts.loop_devices = false;
  facts.controllers.clear();
  facts.state_dir = "/home/user/.local/state/cerco";
  return facts;
}

inline HostFacts host_v2() {
  HostFacts facts = host();
  facts.controllers.clear();
  for (const char* name : {"memory", "pids", "cpu", "unified"}) {
    facts.controllers[name] = {CgroupKind::v2, "/sys/fs/cgroup/system.slice"};
  }
  return facts;
}

// Random that a test can repeat: a run of one letter a call.
inline std::string letters(std::size_t count) {
  static std::size_t calls = 0;
  return std::string(count - 1, 'a') + static_cast<char>('a' + calls++ % 26);
}

inline policy::Egress rule(std::string name, std::string host_name,
                           std::vector<std::uint16_t> ports) {
  policy::Egress egress;
  egress.name = std::move(name);
  egress.host = std::move(host_name);
  egress.ports = std::move(ports);
  return egress;
}

inline policy::Egress inspected(std::string name, std::string host_name,
                                std::vector<std::string> methods, std::vector<std::string> paths) {
  policy::Egress egress = rule(std::move(name), std::move(host_name), {443});
  egress.methods = std::move(methods);
  egress.paths = std::move(paths);
  egress.inspects = true;
  return egress;
}

inline policy::Credential credential(std::string name, std::string host_name) {
  policy::Credential bound;
  bound.name = std::move(name);
  bound.source = {policy::SourceKind::env, "API_KEY", {}};
  bound.hosts = {std::move(host_name)};
  bound.ports = {443};
  bound.methods = {"GET", "POST"};
  bound.paths = {"/v1/**"};
  bound.inject.format = "Bearer {secret}";
  bound.env = {{"API_KEY", "secret"}};
  return bound;
}

// What a task with an API, a package index and a database would have.
inline policy::Policy full_policy() {
  policy::Policy policy;
  policy.task = "report";
  policy.limits.cpu_ms = 60'000;
  policy.egress = {inspected("api", "api.test", {"GET", "POST"}, {"/v1/**"}),
                   rule("index", "pypi.test", {443})};
  policy::Egress database;
  database.name = "database";
  database.tcp = "10.2.3.4:5432";
  policy.egress.push_back(database);
  policy.credentials = {credential("api", "api.test")};
  return policy;
}

// What asks for every protection there is; for storage_host().
inline policy::Policy whole_policy() {
  policy::Policy policy = full_policy();
  policy.limits.io = 10 << 20;
  policy.filesystem.root = policy::RootMode::scratch;
  policy.filesystem.reserve = true;
  return policy;
}

inline Ask ask() {
  Ask wanted;
  wanted.argv = {"python3", "-c", "print(1)"};
  return wanted;
}

}  // namespace plan::testing
