// Records of one size between the supervisor and a guest.
#include "sandbox/microvm/guest_frames.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace sandbox {

namespace {

using Clock = std::chrono::steady_clock;

// Waits for `what` on the port until `end`.
base::Status wait_until(int port, short what, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd polled = {port, what, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return {};
    if (ready == 0) return base::system_error("guest", ETIMEDOUT);
    if (errno != EINTR) return base::system_error("guest");
  }
}

// Without a signal where the other end is gone. On the host the port is a socket, in the guest a
// device.
ssize_t write_some(int port, std::string_view bytes) {
  const ssize_t put = ::send(port, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put >= 0 || errno != ENOTSOCK) return put;
  return ::write(port, bytes.data(), bytes.size());
}

}  // namespace

void GuestNote::say(std::string_view what) {
  length = static_cast<std::uint32_t>(std::min(what.size(), sizeof text));
  std::memcpy(text, what.data(), length);
}

void put_counters(const Counters& counters, GuestNote& note) {
  note.values = {counters.memory_peak,        counters.oom_kills, counters.processes_peak,
                 counters.process_limit_hits, counters.cpu_ms,    counters.disk_used,
                 counters.disk_full ? 1U : 0U};
}

Counters counters_in(const GuestNote& note) {
  const auto value = [&](std::size_t at) { return std::min(note.values.at(at), kMostCounted); };
  Counters counters;
  counters.memory_peak = value(0);
  counters.oom_kills = value(1);
  counters.processes_peak = value(2);
  counters.process_limit_hits = value(3);
  counters.cpu_ms = value(4);
  counters.disk_used = value(5);
  counters.disk_full = note.values[6] != 0;
  return counters;
}

base::Result<GuestNote> read_note(int port, int ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(ms);
  GuestNote note;
  std::size_t have = 0;
  while (have < sizeof note) {
    TRY(wait_until(port, POLLIN, end));
    const ssize_t got = ::read(port, reinterpret_cast<char*>(&note) + have, sizeof note - have);
    if (got == 0) return base::system_error("guest", EPIPE);
    if (got < 0 && errno != EINTR && errno != EAGAIN) return base::system_error("guest");
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  return note;
}

base::Status write_whole(int port, std::string_view bytes, int ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(ms);
  while (!bytes.empty()) {
    TRY(wait_until(port, POLLOUT, end));
    const ssize_t put = write_some(port, bytes);
    if (put < 0 && errno != EINTR && errno != EAGAIN) return base::system_error("guest");
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

}  // namespace sandbox
