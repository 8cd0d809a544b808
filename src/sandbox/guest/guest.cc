// Pid 1 of a microVM's guest.
#include "sandbox/guest/guest.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "sandbox/guest/serve.h"
#include "sandbox/guest/stage.h"
#include "tunnel/tunnel.h"

namespace sandbox {

namespace {

constexpr int kRecordMs = 10'000;

base::Status say(int watch, GuestSays what) {
  GuestNote note;
  note.kind = what;
  return write_whole(watch, record_bytes(note), kRecordMs);
}

void say_failed(int watch, const base::Error& error) {
  GuestNote note;
  note.kind = GuestSays::failed;
  note.base_kind = static_cast<std::uint32_t>(error.kind);
  note.number = error.number;
  note.say(error.where + (error.what.empty() ? "" : ": " + error.what));
  (void)write_whole(watch, record_bytes(note), kRecordMs);
}

base::Result<std::string> read_exactly(int port, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    const std::string got = TRY(os::read_some(port, size - bytes.size(), "watch port"));
    if (got.empty()) return base::system_error("watch port", EPIPE);
    bytes += got;
  }
  return bytes;
}

// A launch of no bytes asks whether the guest is there.
base::Result<GuestLaunch> receive_launch(int watch) {
  std::uint64_t size = 0;
  while (size == 0) {
    TRY(say(watch, GuestSays::up));
    const std::string head = TRY(read_exactly(watch, sizeof size));
    std::memcpy(&size, head.data(), sizeof size);
  }
  if (size > kMaxLaunch) return base::system_error("launch", EMSGSIZE);
  return base::decode<GuestLaunch>(TRY(read_exactly(watch, size)), "launch");
}

// The tunnel's end is a process of its own: it is not to wait for what pid 1 does.
base::Result<os::Child> start_tunnel(int port, int end) {
  const std::array<int, 2> keep = {port, end};
  return os::fork_child(keep, [port, end] {
    (void)::signal(SIGPIPE, SIG_IGN);
    return tunnel::serve(tunnel::Side::inside, {port, port, end});
  });
}

base::Status run_sandbox(const base::Fd& watch) {
  const base::Fd control = TRY(open_port(kControlPort));
  TRY(mount_base());
  TRY(mount_groups());
  TRY(set_up_network());
  // A template ends here: nothing of a task has been in this guest yet, and what follows makes it
  // one of its own.
  const GuestLaunch launch = TRY(receive_launch(watch.get()));
  TRY(become_new(launch));
  const auto plan = TRY(base::decode<plan::Plan>(launch.plan, "plan"));
  TRY(os::make_folders(plan.state_dir, 0700));
  const Inputs inputs = {launch.trust_bundle, kGuestInit};
  std::unique_ptr<Sandbox> sandbox = TRY(start_container(plan, inputs));
  auto [ours, theirs] = TRY(os::socket_pair(SOCK_SEQPACKET));
  os::Child tunnel = TRY(start_tunnel(control.get(), theirs.get()));
  theirs.reset();
  TRY(say(watch.get(), GuestSays::started));
  GuestService(std::move(sandbox), base::Fd(::dup(watch.get())), std::move(ours)).serve();
  // What the command has written last goes out before the machine does.
  (void)tunnel.wait();
  return {};
}

}  // namespace

void run_guest() {
  (void)::signal(SIGPIPE, SIG_IGN);
  const auto prepared = prepare_guest();
  const auto watch = open_port(kWatchPort);
  if (!watch) return;
  auto done = prepared;
  if (done) done = run_sandbox(*watch);
  if (!done) say_failed(watch->get(), done.error());
}

}  // namespace sandbox
