// A started microVM: the guest's sandbox, seen from the host.
#pragma once

#include <memory>

#include "sandbox/microvm/guest_frames.h"
#include "sandbox/microvm/vmm.h"
#include "tunnel/tunnel.h"

namespace sandbox {

// The host's end of the watch port.
class GuestWatch {
 public:
  explicit GuestWatch(base::Fd port) : port_(std::move(port)) {}
  [[nodiscard]] int fd() const { return port_.get(); }

  // Asks and waits for the answer. After one that did not come, or nonsense, the port is not
  // spoken to again: a guest that does not answer once is not worth waiting for. ESHUTDOWN then,
  // and when the guest's sandbox is over.
  [[nodiscard]] base::Result<GuestNote> ask(GuestAsk what, std::uint64_t number);
  // How it stood when cerco-init ended, if the guest has told.
  [[nodiscard]] const std::optional<Counters>& over() const { return over_; }

 private:
  base::Result<GuestNote> exchange(const GuestRequest& request);

  base::Fd port_;
  std::uint32_t sequence_ = 0;
  bool lost_ = false;
  std::optional<Counters> over_;
};

class MicroVm final : public Sandbox {
 public:
  MicroVm(std::unique_ptr<Sandbox> box, std::unique_ptr<Vmm> vmm, base::Fd watch,
          tunnel::Started tunnel);
  MicroVm(const MicroVm&) = delete;
  MicroVm& operator=(const MicroVm&) = delete;
  ~MicroVm() override { (void)MicroVm::destroy(); }

  [[nodiscard]] const ipc::Channel& control() const override { return tunnel_.control; }
  [[nodiscard]] int init_pidfd() const override { return box_->init_pidfd(); }
  // The guest's groups are the guest's to watch: its counters are asked for.
  [[nodiscard]] int oom_fd() const override { return -1; }
  [[nodiscard]] CaptureSockets& capture() override { return box_->capture(); }
  [[nodiscard]] std::uint32_t host_uid(std::uint32_t inside) const override {
    return box_->host_uid(inside);
  }
  [[nodiscard]] base::Result<Counters> counters() override;
  [[nodiscard]] base::Status prepare_commands() override;
  [[nodiscard]] base::Result<std::unique_ptr<CommandProcesses>> command_processes(
      std::uint64_t number) override;
  [[nodiscard]] base::Status freeze() override { return box_->freeze(); }
  [[nodiscard]] base::Status thaw() override { return box_->thaw(); }
  [[nodiscard]] base::Status steer(const plan::Capture& capture) override {
    return box_->steer(capture);
  }
  [[nodiscard]] base::Status cut_network() override { return box_->cut_network(); }
  [[nodiscard]] base::Status end() override;
  [[nodiscard]] base::Status destroy() override;

 private:
  std::unique_ptr<Sandbox> box_;  // of the VMM, a container
  std::unique_ptr<Vmm> vmm_;
  std::shared_ptr<GuestWatch> watch_;
  tunnel::Started tunnel_;
  Counters last_;
};

}  // namespace sandbox
