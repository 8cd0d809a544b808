// Many messages through one buffer.
#include "os/packets.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace os {

PacketReader::PacketReader(std::size_t most, std::size_t most_fds)
    : buffer_(new char[most]),
      most_(most),
      control_(most_fds == 0 ? 0 : CMSG_SPACE(most_fds * sizeof(int))) {}

base::Result<Got> PacketReader::next(int socket) {
  fds_.clear();
  size_ = 0;
  cut_ = false;
  iovec part = {buffer_.get(), most_};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control_.empty() ? nullptr : control_.data();
  message.msg_controllen = control_.size();
  ssize_t got = -1;
  // ECONNRESET tells once that the other end went with messages unread, ahead of what it had sent.
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return Got::nothing;
  if (got < 0) return base::system_error("recvmsg");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      fds_.emplace_back(fd);
    }
  }
  size_ = static_cast<std::size_t>(got);
  cut_ = (message.msg_flags & MSG_TRUNC) != 0;
  return got == 0 ? Got::end : Got::message;
}

}  // namespace os
