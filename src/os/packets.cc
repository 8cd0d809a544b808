// Many messages through one buffer.
#include "os/packets.h"

#include <cerrno>

#include "os/socket.h"

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
  const ssize_t got = receive(socket, message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return Got::nothing;
  if (got < 0) return base::system_error("recvmsg");
  take_descriptors(message, fds_);
  size_ = static_cast<std::size_t>(got);
  cut_ = (message.msg_flags & MSG_TRUNC) != 0;
  return got == 0 ? Got::end : Got::message;
}

}  // namespace os
