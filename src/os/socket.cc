// Unix sockets that carry messages and descriptors.
#include "os/socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace os {

base::Result<std::pair<base::Fd, base::Fd>> socket_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    return base::system_error("socketpair");
  return std::pair(base::Fd(ends[0]), base::Fd(ends[1]));
}

base::Status send_message(int socket, std::string_view bytes, std::span<const int> fds) {
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<char> control;
  if (!fds.empty()) {
    control.resize(CMSG_SPACE(fds.size_bytes()));
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t put = -1;
  do {
    put = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  if (put < 0) return base::system_error("sendmsg");
  return {};
}

ssize_t receive(int socket, msghdr& message, int flags) {
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &message, flags);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  return got;
}

void take_descriptors(msghdr& message, std::vector<base::Fd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

base::Result<Received> receive_message(int socket, std::size_t most, std::size_t most_fds) {
  Received received;
  iovec part = {};
  std::vector<char> control(CMSG_SPACE(most_fds * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  // Not filled with zeros first: most messages need a page or two of the room.
  received.bytes.resize_and_overwrite(most, [&](char* room, std::size_t size) {
    part = {room, size};
    got = receive(socket, message, MSG_CMSG_CLOEXEC);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  });
  if (got < 0) return base::system_error("recvmsg");
  take_descriptors(message, received.fds);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return base::system_error("recvmsg", EMSGSIZE);
  received.end = got == 0;
  return received;
}

}  // namespace os
