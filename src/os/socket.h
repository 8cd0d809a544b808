// Unix sockets that carry messages and descriptors.
#pragma once

#include <sys/socket.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.h"

namespace os {

[[nodiscard]] base::Result<std::pair<base::Fd, base::Fd>> socket_pair(int type);
[[nodiscard]] base::Status send_message(int socket, std::string_view bytes,
                                        std::span<const int> fds);
struct Received {
  std::string bytes;
  std::vector<base::Fd> fds;
  bool end = false;
};
// recvmsg(2), again after a signal, and after the one ECONNRESET by which a socket of this kind
// tells that its other end went with messages unread: what that had sent before comes behind it.
[[nodiscard]] ssize_t receive(int socket, msghdr& message, int flags);
// Takes over the descriptors that came along.
void take_descriptors(msghdr& message, std::vector<base::Fd>& fds);
// One message of at most `most` bytes and `most_fds` descriptors; a longer one is EMSGSIZE.
[[nodiscard]] base::Result<Received> receive_message(int socket, std::size_t most,
                                                     std::size_t most_fds);

}  // namespace os
