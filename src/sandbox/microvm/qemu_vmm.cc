// QEMU as the command of a box.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "base/frame.h"
#include "confine/confine.h"
#include "sandbox/microvm/qemu.h"
#include "sandbox/microvm/vmm.h"

namespace sandbox {

namespace {

constexpr std::uint64_t kVmmCommand = 1;
constexpr std::size_t kMostSaid = 400;

struct Pair {
  base::Fd ours;
  base::Fd theirs;
};

base::Result<Pair> stream_pair() {
  auto ends = TRY(os::socket_pair(SOCK_STREAM));
  return Pair{std::move(ends.first), std::move(ends.second)};
}

base::Result<frame::FromInit> receive(const ipc::Channel& control) {
  auto message = TRY(control.receive());
  if (!message) return base::fail(base::Kind::peer, "the VMM's box", "ended", {});
  return base::decode<frame::FromInit>(message->bytes, "the VMM's box");
}

class Qemu final : public Vmm {
 public:
  base::Result<MachineEnds> boot(const plan::Machine& machine, Container& box, const base::Fd& base,
                                 const base::Fd& disk, const Beginning& beginning) override;
  base::Result<base::Fd> record() override;
  void leave_alone() override { monitor_.reset(); }
  [[nodiscard]] int watch_fd() const override { return box_->control().fd(); }
  [[nodiscard]] std::string ended() override;

 private:
  base::Status start(const plan::Machine& machine, Memory memory, const std::vector<int>& passed);

  Container* box_ = nullptr;
  base::Fd monitor_;  // while it is recorded or restored
  base::Fd said_;     // what it writes to its standard error
};

base::Result<MachineEnds> Qemu::boot(const plan::Machine& machine, Container& box,
                                     const base::Fd& base, const base::Fd& disk,
                                     const Beginning& beginning) {
  box_ = &box;
  const auto ready = TRY(receive(box.control()));
  if (!std::holds_alternative<frame::Ready>(ready)) {
    return base::fail(base::Kind::peer, "the VMM's box", "answered something else", {});
  }
  Pair control = TRY(stream_pair());
  Pair watch = TRY(stream_pair());
  Pair monitor = TRY(stream_pair());
  const base::Fd tap = box.take_tap();
  std::vector<int> passed = {control.theirs.get(), watch.theirs.get(), base.get(), disk.get(),
                             tap.get()};
  if (beginning.memory != Memory::own) {
    passed.insert(passed.end(), {monitor.theirs.get(), beginning.file.get()});
  }
  if (beginning.memory == Memory::restored) passed.push_back(beginning.devices.get());
  TRY(start(machine, beginning.memory, passed));
  if (beginning.memory != Memory::own) monitor_ = std::move(monitor.ours);
  if (beginning.memory == Memory::restored) {
    TRY(os::write_all(monitor_.get(), restore_words(), "monitor"));
  }
  return MachineEnds{std::move(control.ours), std::move(watch.ours)};
}

base::Result<base::Fd> Qemu::record() {
  auto devices = TRY(os::pipe());
  const std::array<int, 1> sent = {devices.second.get()};
  TRY(os::send_message(monitor_.get(), record_descriptor_words(), sent));
  TRY(os::write_all(monitor_.get(), record_words(), "monitor"));
  return std::move(devices.first);
}

base::Status Qemu::start(const plan::Machine& machine, Memory memory,
                         const std::vector<int>& passed) {
  auto said = TRY(os::pipe());
  // A VMM that says much must not wait until somebody reads it.
  TRY(os::set_nonblocking(said.second.get()));
  TRY(os::set_nonblocking(said.first.get()));
  const base::Fd null = TRY(os::open("/dev/null", O_RDWR, 0));
  frame::Exec exec;
  exec.id = kVmmCommand;
  exec.argv = qemu_arguments(machine, memory);
  exec.cwd = "/";
  exec.filter = confine::as_bytes(confine::filter(confine::Profile::vmm));
  exec.passed = static_cast<std::uint32_t>(passed.size());
  if (memory != Memory::own) exec.env = {std::string("LD_PRELOAD=") + kBoxMemoryOpener};
  std::vector<int> fds = {null.get(), null.get(), said.second.get()};
  fds.insert(fds.end(), passed.begin(), passed.end());
  TRY_IN("the VMM's box", ipc::send_value(box_->control(), frame::ToInit(std::move(exec)), fds));
  said_ = std::move(said.first);
  const auto answer = TRY(receive(box_->control()));
  if (const auto* failed = std::get_if<frame::NotStarted>(&answer)) {
    return base::system_error(fmt::format("start the VMM: {}", failed->step),
                              static_cast<int>(failed->error));
  }
  return {};
}

std::string Qemu::ended() {
  pollfd polled = {box_->control().fd(), POLLIN, 0};
  if (::poll(&polled, 1, 0) <= 0) return {};
  const auto word = receive(box_->control());
  if (word && !std::holds_alternative<frame::Ended>(*word)) return {};
  std::string why = "the VMM ended";
  if (word) {
    const auto& ended = std::get<frame::Ended>(*word);
    why =
        fmt::format("the VMM ended with {} {}", ended.signalled ? "signal" : "status", ended.code);
  }
  const auto text = os::read_some(said_.get(), kMostSaid, "the VMM");
  if (text && !text->empty()) why += ": " + base::printable(text->substr(0, text->find('\n')));
  return why;
}

}  // namespace

std::unique_ptr<Vmm> make_qemu() {
  return std::make_unique<Qemu>();
}

}  // namespace sandbox
