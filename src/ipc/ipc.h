// Messages with descriptors between our own processes: Unix SEQPACKET sockets.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"

namespace ipc {

inline constexpr std::size_t kMaxMessage = std::size_t{160} * 1024;
inline constexpr std::size_t kMaxFds = 128;

struct Message {
  std::string bytes;
  std::vector<base::Fd> fds;
};

// One end of a socket pair. Blocking unless the descriptor was made non-blocking.
class Channel {
 public:
  Channel() = default;
  explicit Channel(base::Fd fd) : fd_(std::move(fd)) {}

  // Sends one whole message. EMSGSIZE past kMaxMessage; EPIPE (never a signal) when the peer is
  // gone; EAGAIN on a full non-blocking socket.
  [[nodiscard]] base::Status send(std::string_view bytes, std::span<const int> fds) const;
  // One whole message; nullopt at the peer's end. A message that was cut, or has more than
  // kMaxFds descriptors, is an error. Descriptors arrive close-on-exec.
  [[nodiscard]] base::Result<std::optional<Message>> receive() const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool open() const { return fd_.open(); }
  [[nodiscard]] base::Fd release() { return std::move(fd_); }

 private:
  base::Fd fd_;
};

[[nodiscard]] base::Result<std::pair<Channel, Channel>> make_pair();

// Encodes and sends a value; receives and decodes one.
template <class T>
[[nodiscard]] base::Status send_value(const Channel& channel, const T& value,
                                      std::span<const int> fds) {
  return channel.send(base::encode(value), fds);
}

}  // namespace ipc
