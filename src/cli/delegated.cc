// A cgroup of the caller's own, asked of systemd.
#include "cli/delegated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "host/host.h"
#include "os/os.h"

namespace cli {
namespace {

constexpr const char* kBusctl = "/usr/bin/busctl";
constexpr std::size_t kMostText = 1 << 20;
constexpr int kTurns = 500;  // of 10 ms, until the job that makes the scope is done
constexpr std::string_view kPrefix = "cerco-";

std::string variable(const World& world, const char* name) {
  const auto at = world.env.find(name);
  return at == world.env.end() ? std::string() : at->second;
}

std::vector<host::Hierarchy> own_groups() {
  const auto cgroup = os::read_file("/proc/self/cgroup", kMostText);
  const auto mounts = os::read_file("/proc/self/mountinfo", kMostText);
  if (!cgroup || !mounts) return {};
  return host::hierarchies(*cgroup, *mounts);
}

// The first group of this process that lies in a scope of that name.
bool stands_in(std::string_view scope) {
  return std::ranges::any_of(own_groups(), [&](const host::Hierarchy& hierarchy) {
    return hierarchy.own.contains(fmt::format("/{}", scope));
  });
}

bool may_ask(const World& world, const plan::HostFacts& facts) {
  if (facts.root || facts.controllers.contains("memory")) return false;
  const std::string runtime = variable(world, "XDG_RUNTIME_DIR");
  return runtime.starts_with('/') &&
         os::path_kind(runtime + "/systemd/private") == os::PathKind::other &&
         os::may_access(kBusctl, os::Access::read) && !stands_in(kPrefix);
}

// The job is queued when busctl ends well.
bool ask(const World& world, const std::string& scope) {
  const std::vector<std::string> argv = {kBusctl,
                                         "--user",
                                         "--quiet",
                                         "--timeout=10",
                                         "call",
                                         "org.freedesktop.systemd1",
                                         "/org/freedesktop/systemd1",
                                         "org.freedesktop.systemd1.Manager",
                                         "StartTransientUnit",
                                         "ssa(sv)a(sa(sv))",
                                         scope,
                                         "fail",
                                         "3",
                                         "PIDs",
                                         "au",
                                         "1",
                                         std::to_string(::getpid()),
                                         "Delegate",
                                         "b",
                                         "true",
                                         "CollectMode",
                                         "s",
                                         "inactive-or-failed",
                                         "0"};
  std::vector<std::string> env = {"LANG=C"};
  for (const char* name : {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}) {
    const std::string value = variable(world, name);
    if (!value.empty()) env.push_back(fmt::format("{}={}", name, value));
  }
  const base::Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const std::pair<int, int> pairs[] = {{null.get(), 2}};
  auto child = os::spawn(argv, env, pairs);
  if (!child) return false;
  const auto status = child->wait();
  return status && *status == 0;
}

bool write_text(const std::string& path, std::string_view text) {
  const auto fd = os::open(path, O_WRONLY, 0);
  return fd && ::write(fd->get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// A group that hands controllers down may hold no process (cgroups(7), no internal processes), so
// this one goes a folder further down. What is not to be had then lacks in the facts.
void hand_down(const std::string& group) {
  const auto folder = os::open(group, O_PATH | O_DIRECTORY, 0);
  if (!folder || !os::make_folder_at(folder->get(), "caller", 0755)) return;
  if (!write_text(group + "/caller/cgroup.procs", "0")) return;
  for (const char* controller : {"+memory", "+pids", "+cpu", "+io"}) {
    (void)write_text(group + "/cgroup.subtree_control", controller);
  }
}

}  // namespace

bool join_delegated_group(const World& world, const plan::HostFacts& facts) {
  if (!may_ask(world, facts)) return false;
  const std::string scope = fmt::format("{}{}.scope", kPrefix, base::random_base32(12));
  if (!ask(world, scope)) return false;
  for (int turn = 0; turn < kTurns && !stands_in(scope); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!stands_in(scope)) return false;
  for (const host::Hierarchy& hierarchy : own_groups()) {
    if (hierarchy.kind == plan::CgroupKind::v2) hand_down(hierarchy.own);
  }
  return true;
}

}  // namespace cli
