// A started container: what the kernel says of it, and its end.
#include "sandbox/container/container.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "sandbox/container/rights.h"

namespace sandbox {

namespace {

constexpr int kTunnelWaitMs = 500;
std::uint64_t cpu_ms(const priv::Groups& groups) {
  if (groups.has("cpuacct", priv::Hierarchy::v1)) {
    return groups.value("cpuacct", "cpuacct.usage", {}) / 1'000'000;
  }
  for (const char* controller : {"cpu", "memory", "pids", "unified"}) {
    if (!groups.has(controller, priv::Hierarchy::v2)) continue;
    return groups.value(controller, "cpu.stat", "usage_usec") / 1000;
  }
  return 0;
}

void read_groups(const priv::Groups& groups, Counters& counters) {
  const bool v1 = groups.has("memory", priv::Hierarchy::v1);
  counters.memory_peak =
      groups.value("memory", v1 ? "memory.max_usage_in_bytes" : "memory.peak", {});
  // Counted apart on v1; the two peaks need not be of one moment, so this is the most it can be.
  if (v1) counters.memory_peak += groups.value("memory", "memory.kmem.tcp.max_usage_in_bytes", {});
  counters.oom_kills =
      groups.value("memory", v1 ? "memory.oom_control" : "memory.events", "oom_kill");
  counters.processes_peak = groups.value("pids", "pids.peak", {});
  counters.process_limit_hits = groups.value("pids", "pids.events", "max");
  counters.cpu_ms = cpu_ms(groups);
}

class GroupedProcesses final : public CommandProcesses {
 public:
  explicit GroupedProcesses(priv::CommandGroups groups) : groups_(std::move(groups)) {}
  [[nodiscard]] std::vector<int> entries() const override { return groups_.entries(); }
  [[nodiscard]] base::Status kill() override { return groups_.kill(); }
  [[nodiscard]] bool remove_empty() override { return groups_.remove_empty(); }
  [[nodiscard]] std::uint64_t oom_kills() const override { return groups_.oom_kills(); }
  [[nodiscard]] std::uint64_t memory_peak() const override { return groups_.memory_peak(); }

 private:
  priv::CommandGroups groups_;
};

}  // namespace

base::Status Container::prepare_commands() {
  if (held_.tunnel.running()) return base::not_yet("a detached run in tier gvisor");
  return priv::prepare_command_groups(Rights::badge(), held_.groups);
}

base::Result<std::unique_ptr<CommandProcesses>> Container::command_processes(std::uint64_t number) {
  return std::make_unique<GroupedProcesses>(
      TRY(priv::make_command_groups(Rights::badge(), held_.groups, number)));
}

base::Result<Counters> Container::counters() {
  if (!held_.init.running()) return last_;
  read_groups(held_.groups, last_);
  if (held_.disk.open()) {
    const priv::DiskUse use = TRY(priv::disk_use(held_.disk.get()));
    last_.disk_used = use.used;
    last_.disk_full = use.full;
  }
  if (held_.rules.open()) {
    const priv::RefusalCounters refusals =
        TRY(priv::read_refusals(Rights::badge(), held_.rules.get()));
    last_.refused_in_kernel = refusals.refused;
    last_.refused_logged = refusals.logged;
    last_.refused_ranges = refusals.refused_ranges;
    last_.logged_ranges = refusals.logged_ranges;
  }
  return last_;
}

// Only there has the host a tunnel.
bool Container::crippled() {
  if (!held_.tunnel.running() || !held_.init.running()) return false;
  for (const char* controller : {"pids", "memory", "cpu", "unified", "freezer"}) {
    const auto processes = held_.groups.read(controller, "cgroup.procs");
    if (processes) return stubs_.look(*processes, "/proc") != 0;
  }
  return false;
}

base::Status Container::steer(const plan::Capture& capture) {
  if (!held_.rules.open()) return base::system_error("steer", ENODEV);
  const std::string batch =
      priv::steering_rules(held_.network, TRY(steered_ranges(capture)),
                           capture.steer_public ? priv::Public::steered : priv::Public::refused);
  return priv::transact_from_outside(Rights::badge(), held_.rules.get(), batch);
}

base::Status Container::cut_network() {
  if (!held_.rules.open()) return base::system_error("cut network", ENODEV);
  return priv::transact_from_outside(Rights::badge(), held_.rules.get(),
                                     priv::cut_rules(held_.network));
}

std::unexpected<base::Error> Container::not_ended() const {
  const std::string asleep = base::join(held_.groups.sleepers(), ", ");
  if (asleep.empty()) return base::system_error("wait for the sandbox's end", ETIMEDOUT);
  return base::fail(base::Kind::system, "wait for the sandbox's end",
                    "in uninterruptible wait, so that no signal ends it: process " + asleep,
                    "`cerco gc` removes what is left once the kernel lets it go");
}

// Init is pid 1 of its namespace: the kernel lets nobody see its end before every other process of
// the namespace is gone and reaped.
base::Status Container::end_processes() {
  if (!held_.init.running()) return {};
  const int patience = std::exchange(patience_ms_, 0);
  const auto killed = held_.groups.kill();
  held_.init.kill(SIGKILL);
  pollfd ended = {held_.init.pidfd(), POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&ended, 1, patience);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return not_ended();
  if (const auto status = held_.init.wait(); !status) return std::unexpected(status.error());
  return killed;
}

// What came before the end is still on its way to the command's streams; who does not read them
// does not hold this up for long.
void Container::await_tunnel() {
  if (!held_.tunnel.running()) return;
  pollfd ended = {held_.tunnel.pidfd(), POLLIN, 0};
  (void)::poll(&ended, 1, kTunnelWaitMs);
  held_.tunnel = os::Child();
}

base::Status Container::end() {
  if (const auto ended = end_processes(); !ended) {
    held_.lease.abandon();  // the uids stay closed until the garbage collector found them unused
    return ended;
  }
  await_tunnel();
  held_.control = ipc::Channel();
  held_.capture = CaptureSockets();
  held_.rules.reset();
  held_.memory.reset();
  if (const auto removed = held_.groups.remove(); !removed) {
    held_.lease.abandon();
    return removed;
  }
  held_.lease.release();
  return {};
}

base::Status Container::destroy() {
  const auto ended = end();
  // Every other mount of the disk is gone. Where this fails the kernel only takes longer.
  if (held_.disk.open() && !held_.only_uid)
    (void)priv::discard_disk(Rights::badge(), held_.disk.get());
  held_.disk.reset();
  return ended;
}

}  // namespace sandbox
