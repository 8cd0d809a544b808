// The OCI configuration of a sandbox below gVisor's kernel.
#include <fmt/format.h>

#include "base/json.h"
#include "sandbox/gvisor/gvisor.h"

namespace sandbox::gvisor {

namespace {

constexpr std::uint64_t kIds = 65536;  // of a lease

std::string quoted(std::string_view text) {
  return base::json_string(text);
}

std::string mount(std::string_view target, std::string_view kind, std::string_view source,
                  std::string_view options) {
  return fmt::format(R"({{"destination":{},"type":"{}","source":{},"options":[{}]}})",
                     quoted(target), kind, quoted(source), options);
}

std::string mounts(const plan::Plan& plan) {
  std::string all = mount("/proc", "proc", "proc", "");
  const auto add = [&](std::string one) { all += "," + std::move(one); };
  add(mount("/dev", "tmpfs", "tmpfs", ""));
  std::string shared = R"("mode=1777")";
  if (const auto* dev = plan::step_of<plan::MountDev>(plan)) {
    shared += fmt::format(R"(,"size={}")", dev->shm_size);
  }
  add(mount("/dev/shm", "tmpfs", "tmpfs", shared));
  if (plan::step_of<plan::MountCgroups>(plan) != nullptr) add(mount("/sys", "sysfs", "sysfs", ""));
  if (const auto* disk = plan::step_of<plan::MountDisk>(plan)) {
    // With what stands on it: read-only folders that the caller brought in.
    for (const auto& target : disk->targets) {
      add(mount(target, "bind", target, R"("rbind","rw","nosuid","nodev")"));
    }
  }
  return all;
}

std::string process(const plan::Plan& plan) {
  // What cerco-init takes from itself and from each command.
  constexpr std::string_view kRights = R"(["CAP_SETUID","CAP_SETGID","CAP_KILL","CAP_SETPCAP"])";
  std::string limits;
  if (const auto* files = plan::step_of<plan::Rlimits>(plan)) {
    limits = fmt::format(R"({{"type":"RLIMIT_NOFILE","hard":{0},"soft":{0}}})", files->files);
  }
  return fmt::format(R"({{"user":{{"uid":0,"gid":0}},"args":[{0},"tunnel"],"cwd":"/","env":[],)"
                     R"("capabilities":{{"bounding":{1},"effective":{1},"permitted":{1},)"
                     R"("inheritable":[]}},"rlimits":[{2}]}})",
                     quoted(kInit), kRights, limits);
}

}  // namespace

// The root is read-only as it is mounted on the host: runsc could not make it so once more, since
// in a user namespace nobody mounts again what is nosuid and nodev without naming both.
std::string configuration(const plan::Plan& plan, std::uint32_t owner) {
  const std::string ids =
      fmt::format(R"([{{"containerID":0,"hostID":{},"size":{}}}])", owner, kIds);
  return fmt::format(
      R"({{"ociVersion":"1.0.2","root":{{"path":"/","readonly":false}},"hostname":"sandbox",)"
      R"("process":{},"mounts":[{}],"linux":{{"uidMappings":{},"gidMappings":{},"namespaces":[)"
      R"({{"type":"network","path":"/proc/self/ns/net"}},{{"type":"user"}},{{"type":"pid"}},)"
      R"({{"type":"ipc"}},{{"type":"uts"}},{{"type":"mount"}}]}}}})",
      process(plan), mounts(plan), ids, ids);
}

}  // namespace sandbox::gvisor
