// A started container.
#pragma once

#include <optional>

#include "os/os.h"
#include "sandbox/container/prepared.h"
#include "sandbox/gvisor/stubs.h"

namespace sandbox {

// What a start leaves in the starter's hands. Its end kills every process and gives everything
// back.
struct Holdings {
  priv::Lease lease;
  priv::Groups groups;
  os::Child init;
  ipc::Channel control;
  os::Child tunnel;  // with gVisor: what stands between cerco-init and `control`
  CaptureSockets capture;
  base::Fd rules;  // netlink socket of the network namespace
  base::Fd disk;
  base::Fd tap;     // of a box
  base::Fd memory;  // readable when the memory limit was met
  priv::NamespaceNetwork network;
  std::uint32_t owner = 0;
  std::optional<std::uint32_t> only_uid;  // with a user namespace of the caller's own
};

class Container final : public Sandbox {
 public:
  explicit Container(Holdings held) : held_(std::move(held)) {}
  Container(const Container&) = delete;
  Container& operator=(const Container&) = delete;
  ~Container() override { (void)Container::destroy(); }

  [[nodiscard]] const ipc::Channel& control() const override { return held_.control; }
  [[nodiscard]] int init_pidfd() const override { return held_.init.pidfd(); }
  [[nodiscard]] int oom_fd() const override { return held_.memory.get(); }
  [[nodiscard]] CaptureSockets& capture() override { return held_.capture; }
  [[nodiscard]] std::uint32_t host_uid(std::uint32_t inside) const override {
    return held_.only_uid.value_or(held_.owner + inside);
  }
  [[nodiscard]] base::Result<Counters> counters() override;
  [[nodiscard]] base::Status prepare_commands() override;
  [[nodiscard]] base::Result<std::unique_ptr<CommandProcesses>> command_processes(
      std::uint64_t number) override;
  [[nodiscard]] bool crippled() override;
  [[nodiscard]] base::Status freeze() override { return held_.groups.freeze(); }
  [[nodiscard]] base::Status thaw() override { return held_.groups.thaw(); }
  [[nodiscard]] base::Status steer(const plan::Capture& capture) override;
  [[nodiscard]] base::Status cut_network() override;
  [[nodiscard]] base::Status end() override;
  [[nodiscard]] base::Status destroy() override;
  // The tap of a plan with MakeTap; once.
  [[nodiscard]] base::Fd take_tap() { return std::move(held_.tap); }

 private:
  [[nodiscard]] base::Status end_processes();
  void await_tunnel();
  [[nodiscard]] std::unexpected<base::Error> not_ended() const;

  Holdings held_;
  Counters last_;             // from before the end
  gvisor::Stubs stubs_;       // of gVisor's
  int patience_ms_ = 10'000;  // for the last process; none once it was in vain
};

}  // namespace sandbox
