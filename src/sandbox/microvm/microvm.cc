// A started microVM.
#include "sandbox/microvm/microvm.h"

#include <algorithm>
#include <cerrno>

namespace sandbox {

namespace {

constexpr int kAnswerMs = 3'000;

// Groups that stand in the guest. What cannot be asked any more has ended with the guest.
class GuestProcesses final : public CommandProcesses {
 public:
  GuestProcesses(std::shared_ptr<GuestWatch> watch, std::uint64_t number)
      : watch_(std::move(watch)), number_(number) {}
  // The guest adds its own.
  [[nodiscard]] std::vector<int> entries() const override { return {}; }
  [[nodiscard]] base::Status kill() override {
    const auto done = watch_->ask(GuestAsk::kill_command, number_);
    if (done) return {};
    return std::unexpected(done.error());
  }
  [[nodiscard]] bool remove_empty() override {
    const auto done = watch_->ask(GuestAsk::remove_command, number_);
    return !done || done->values[0] == 1;
  }
  [[nodiscard]] std::uint64_t oom_kills() const override { return count(0); }
  [[nodiscard]] std::uint64_t memory_peak() const override { return count(1); }

 private:
  [[nodiscard]] std::uint64_t count(std::size_t at) const {
    const auto note = watch_->ask(GuestAsk::command_counters, number_);
    return note ? std::min(note->values.at(at), kMostCounted) : 0;
  }
  std::shared_ptr<GuestWatch> watch_;
  std::uint64_t number_;
};

}  // namespace

base::Result<GuestNote> GuestWatch::exchange(const GuestRequest& request) {
  TRY(write_whole(port_.get(), record_bytes(request), kAnswerMs));
  while (true) {
    const GuestNote note = TRY(read_note(port_.get(), kAnswerMs));
    if (note.kind == GuestSays::over) {
      over_ = counters_in(note);
      return base::system_error("guest", ESHUTDOWN);
    }
    // Nothing else is due.
    if (note.kind != GuestSays::answer || note.sequence != request.sequence) {
      return base::system_error("guest", EPROTO);
    }
    return note;
  }
}

base::Result<GuestNote> GuestWatch::ask(GuestAsk what, std::uint64_t number) {
  if (lost_) return base::system_error("guest", ESHUTDOWN);
  auto answer = exchange({what, ++sequence_, number});
  if (!answer && !over_ && answer.error().number == EPIPE) {
    // It had been told already, before the machine went.
    const auto note = read_note(port_.get(), 0);
    if (note && note->kind == GuestSays::over) over_ = counters_in(*note);
  }
  lost_ = !answer;
  if (answer && answer->number != 0) {
    return base::system_error("guest: " + base::printable(answer->said()), answer->number);
  }
  return answer;
}

MicroVm::MicroVm(std::unique_ptr<Sandbox> box, std::unique_ptr<Vmm> vmm, base::Fd watch,
                 tunnel::Started tunnel)
    : box_(std::move(box)),
      vmm_(std::move(vmm)),
      watch_(std::make_shared<GuestWatch>(std::move(watch))),
      tunnel_(std::move(tunnel)) {}

// Of the workload: what the guest says, since its limits are held there. Of the network: what the
// box's own kernel says.
base::Result<Counters> MicroVm::counters() {
  const auto note = watch_->ask(GuestAsk::counters, 0);
  Counters now = note ? counters_in(*note) : watch_->over().value_or(last_);
  const Counters outer = TRY(box_->counters());
  now.refused_in_kernel = outer.refused_in_kernel;
  now.refused_logged = outer.refused_logged;
  now.refused_ranges = outer.refused_ranges;
  now.logged_ranges = outer.logged_ranges;
  last_ = now;
  return now;
}

base::Status MicroVm::prepare_commands() {
  const auto done = watch_->ask(GuestAsk::prepare_commands, 0);
  if (done) return {};
  return std::unexpected(done.error());
}

base::Result<std::unique_ptr<CommandProcesses>> MicroVm::command_processes(std::uint64_t number) {
  TRY(watch_->ask(GuestAsk::make_command, number));
  return std::make_unique<GuestProcesses>(watch_, number);
}

base::Status MicroVm::end() {
  const auto ended = box_->end();
  tunnel_.control = ipc::Channel();
  tunnel_.child = os::Child();
  return ended;
}

base::Status MicroVm::destroy() {
  const auto ended = end();
  const auto destroyed = box_->destroy();
  return ended ? destroyed : ended;
}

}  // namespace sandbox
