// Messages over Unix SEQPACKET sockets.
#include "ipc/ipc.h"

#include <sys/socket.h>

#include "os/os.h"

namespace ipc {

base::Status Channel::send(std::string_view bytes, std::span<const int> fds) const {
  if (bytes.empty() || bytes.size() > kMaxMessage || fds.size() > kMaxFds) {
    return base::system_error("send message", EMSGSIZE);
  }
  return os::send_message(fd_.get(), bytes, fds);
}

base::Result<std::optional<Message>> Channel::receive() const {
  auto received = os::receive_message(fd_.get(), kMaxMessage, kMaxFds);
  if (!received) return std::unexpected(std::move(received).error());
  if (received->end) return std::optional<Message>();
  return Message{std::move(received->bytes), std::move(received->fds)};
}

base::Result<std::pair<Channel, Channel>> make_pair() {
  auto [left, right] = TRY(os::socket_pair(SOCK_SEQPACKET));
  return std::pair(Channel(std::move(left)), Channel(std::move(right)));
}

}  // namespace ipc
