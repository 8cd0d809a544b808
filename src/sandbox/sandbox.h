// One interface for every tier: start what a Plan says, and end it without a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/base.h"
#include "ipc/ipc.h"
#include "os/os.h"
#include "plan/plan.h"

namespace sandbox {

// Sockets that were made inside the sandbox's network namespace and handed out before its first
// instruction.
struct CaptureSockets {
  base::Fd tcp4,
      tcp6;  // listening, transparent: getsockname(2) of an accepted one is where it was going
  base::Fd dns4, dns6;          // UDP 53, IP_PKTINFO / IPV6_RECVPKTINFO on
  base::Fd dns_tcp4, dns_tcp6;  // TCP 53, listening
  base::Fd refused;  // NETLINK_NETFILTER, bound to the log group of what the kernel refused
};

// What the caller brings besides the Plan.
struct Inputs {
  std::string
      trust_bundle;  // PEM: host roots and the run's authority; empty when no TLS is terminated
  std::string init_path;  // cerco-init on the host; copied into a sealed memfd
};

// Why the sandbox's limits were hit, read from the kernel.
struct Counters {
  std::uint64_t memory_peak = 0;  // bytes
  std::uint64_t oom_kills = 0;
  std::uint64_t processes_peak = 0;  // 0 where the kernel does not say
  std::uint64_t process_limit_hits = 0;
  std::uint64_t cpu_ms = 0;
  std::uint64_t disk_used = 0;          // bytes of the working disk
  bool disk_full = false;               // no block or no inode left for the workload
  std::uint64_t refused_in_kernel = 0;  // connections and datagrams, exact
  std::uint64_t refused_logged = 0;     // of these, how many the log was sent
  std::uint64_t refused_ranges = 0;     // of refused_in_kernel, those to ranges that are guarded
  std::uint64_t logged_ranges = 0;      // of these, how many the log was sent
};

// The processes of one command of a session, told apart from all others whatever they do.
class CommandProcesses {
 public:
  virtual ~CommandProcesses() = default;
  // Descriptors that go to cerco-init behind the command's streams (frame::Exec::groups).
  [[nodiscard]] virtual std::vector<int> entries() const = 0;
  // Kills every one of them, at once.
  [[nodiscard]] virtual base::Status kill() = 0;
  // Gives back what stands for them if none is left; whether that is so. Nothing else may be asked
  // afterwards.
  [[nodiscard]] virtual bool remove_empty() = 0;
  [[nodiscard]] virtual std::uint64_t oom_kills() const = 0;
  [[nodiscard]] virtual std::uint64_t memory_peak() const = 0;  // bytes; 0: not known
};

// A started sandbox. Destroying it kills every process and gives back all that it held.
class Sandbox {
 public:
  virtual ~Sandbox() = default;
  // Control channel to cerco-init (frame::ToInit, frame::FromInit).
  [[nodiscard]] virtual const ipc::Channel& control() const = 0;
  // Readable when init has ended.
  [[nodiscard]] virtual int init_pidfd() const = 0;
  // Readable on memory pressure at the limit (-1 where `counters()` must be polled instead).
  [[nodiscard]] virtual int oom_fd() const = 0;
  [[nodiscard]] virtual CaptureSockets& capture() = 0;
  [[nodiscard]] virtual std::uint32_t host_uid(std::uint32_t inside) const = 0;
  [[nodiscard]] virtual base::Result<Counters> counters() = 0;
  // Makes the sandbox one whose commands end one by one; once, before its first command.
  [[nodiscard]] virtual base::Status prepare_commands() = 0;
  // For the command of that number, before it starts. `missing` where this host has nothing to tell
  // processes apart by.
  [[nodiscard]] virtual base::Result<std::unique_ptr<CommandProcesses>> command_processes(
      std::uint64_t number) = 0;
  [[nodiscard]] virtual base::Status freeze() = 0;
  [[nodiscard]] virtual base::Status thaw() = 0;
  // Takes to the gateway what `capture` says from now on, and refuses all else: all of it at once,
  // or nothing and an error. Not after cut_network(). `unsupported` where a tier cannot.
  [[nodiscard]] virtual base::Status steer(const plan::Capture&) {
    return base::not_yet("change of what is steered in this tier");
  }
  // Drops every connection and refuses new ones, at once.
  [[nodiscard]] virtual base::Status cut_network() = 0;
  // Kills every process and waits until none is left; then namespaces, cgroups and uid lease are
  // gone, and nobody can reach the disk. Idempotent. An error names what could not be removed.
  [[nodiscard]] virtual base::Status end() = 0;
  // end(), and the disk's unmount, loop device and image, which takes the kernel longest and cannot
  // fail. Idempotent.
  [[nodiscard]] virtual base::Status destroy() = 0;
};

// Starts what the plan says in the plan's tier. On error nothing is left behind and the message
// names the step.
[[nodiscard]] base::Result<std::unique_ptr<Sandbox>> start(const plan::Plan& plan,
                                                           const Inputs& inputs);
// The container tier: carries out plan.steps in order.
[[nodiscard]] base::Result<std::unique_ptr<Sandbox>> start_container(const plan::Plan& plan,
                                                                     const Inputs& inputs);

// The microVM tier: boots plan.machine in a box of its own and carries the steps out inside.
[[nodiscard]] base::Result<std::unique_ptr<Sandbox>> start_microvm(const plan::Plan& plan,
                                                                   const Inputs& inputs);

// Makes the template of such a microVM, from which its starts are copies until kernel, VMM, image,
// processor or our programs change, or a week has gone; makes none where there is one. Its path.
[[nodiscard]] base::Result<std::string> warm_microvm(const plan::Plan& plan, const Inputs& inputs);

// Makes ready what the next start of such a Plan takes from a shelf (a formatted disk); called
// after the answer.
[[nodiscard]] base::Status prepare_spare(const plan::Plan& plan);

// Removes what runs that ended without their supervisor left below the state directory and in
// cgroups; returns how many things. Runs that are alive (their lease is locked) are left alone.
[[nodiscard]] base::Result<std::uint64_t> collect_garbage(const std::string& state_dir,
                                                          const plan::HostFacts& host);

}  // namespace sandbox
