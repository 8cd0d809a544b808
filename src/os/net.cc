// Internet sockets without waiting.
#include "os/net.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace os {
namespace {

template <class Call>
Moved moved(Call call) {
  ssize_t count = -1;
  do {
    count = call();
  } while (count < 0 && errno == EINTR);
  if (count < 0) return {.error = errno == EWOULDBLOCK ? EAGAIN : errno};
  return {.bytes = static_cast<std::size_t>(count)};
}

struct Socket {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

Socket to_socket(const Endpoint& endpoint) {
  Socket socket;
  if (endpoint.v6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(endpoint.port);
    address.sin6_scope_id = endpoint.scope;
    std::memcpy(&address.sin6_addr, endpoint.address.data(), 16);
    std::memcpy(&socket.storage, &address, sizeof address);
    socket.size = sizeof address;
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    std::memcpy(&address.sin_addr, endpoint.address.data(), 4);
    std::memcpy(&socket.storage, &address, sizeof address);
    socket.size = sizeof address;
  }
  return socket;
}

std::optional<Endpoint> to_endpoint(const Socket& socket) {
  Endpoint endpoint;
  if (socket.storage.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &socket.storage, sizeof address);
    endpoint.v6 = true;
    endpoint.port = ntohs(address.sin6_port);
    endpoint.scope = address.sin6_scope_id;
    std::memcpy(endpoint.address.data(), &address.sin6_addr, 16);
    return endpoint;
  }
  if (socket.storage.ss_family != AF_INET) return std::nullopt;
  sockaddr_in address{};
  std::memcpy(&address, &socket.storage, sizeof address);
  endpoint.port = ntohs(address.sin_port);
  std::memcpy(endpoint.address.data(), &address.sin_addr, 4);
  return endpoint;
}

base::Status option(int socket, int level, int name, int value, const char* what) {
  if (::setsockopt(socket, level, name, &value, sizeof value) != 0) return base::system_error(what);
  return {};
}

}  // namespace

Moved receive(int socket, std::span<char> into) {
  return moved([&] { return ::recv(socket, into.data(), into.size(), MSG_DONTWAIT); });
}

Moved peek(int socket, std::span<char> into) {
  return moved([&] { return ::recv(socket, into.data(), into.size(), MSG_DONTWAIT | MSG_PEEK); });
}

Moved send(int socket, std::string_view bytes) {
  return moved(
      [&] { return ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL); });
}

Moved send(int socket, std::string_view first, std::string_view second) {
  iovec parts[2] = {{const_cast<char*>(first.data()), first.size()},
                    {const_cast<char*>(second.data()), second.size()}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  return moved([&] { return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL); });
}

Moved splice(int from, int to, std::size_t most) {
  return moved([&] {
    return ::splice(from, nullptr, to, nullptr, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  });
}

base::Result<base::Fd> start_connect(const Endpoint& to) {
  base::Fd fd(::socket(to.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.open()) return base::system_error("socket");
  Socket address = to_socket(to);
  if (::connect(fd.get(), address.raw(), address.size) != 0 && errno != EINPROGRESS) {
    return base::system_error("connect");
  }
  return fd;
}

int connect_result(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

base::Result<base::Fd> accept(int listener) {
  int fd = -1;
  do {
    fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return base::system_error("accept");
  return base::Fd(fd);
}

base::Result<base::Fd> listen(const Endpoint& at) {
  base::Fd fd(::socket(at.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.open()) return base::system_error("socket");
  auto reuse = option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "setsockopt SO_REUSEADDR");
  if (!reuse) return std::unexpected(std::move(reuse).error());
  Socket address = to_socket(at);
  if (::bind(fd.get(), address.raw(), address.size) != 0) return base::system_error("bind");
  if (::listen(fd.get(), 128) != 0) return base::system_error("listen");
  return fd;
}

base::Result<Endpoint> local_endpoint(int socket) {
  Socket address;
  if (::getsockname(socket, address.raw(), &address.size) != 0) {
    return base::system_error("getsockname");
  }
  auto endpoint = to_endpoint(address);
  if (!endpoint) return base::system_error("getsockname", EAFNOSUPPORT);
  return *endpoint;
}

base::Result<Endpoint> peer_endpoint(int socket) {
  Socket address;
  if (::getpeername(socket, address.raw(), &address.size) != 0) {
    return base::system_error("getpeername");
  }
  auto endpoint = to_endpoint(address);
  if (!endpoint) return base::system_error("getpeername", EAFNOSUPPORT);
  return *endpoint;
}

base::Status set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::system_error("fcntl O_NONBLOCK");
  }
  return {};
}

base::Status set_no_delay(int socket) {
  return option(socket, IPPROTO_TCP, TCP_NODELAY, 1, "setsockopt TCP_NODELAY");
}

base::Status bound_queue(int socket, Queue queue) {
  constexpr int kTunedUnsent = 1 << 20;
  constexpr int kTightUnsent = 128 << 10;
  constexpr int kTightUnread = 128 << 10;  // the kernel doubles it, for what it adds itself
  const bool tight = queue == Queue::tight;
  TRY(option(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, tight ? kTightUnsent : kTunedUnsent,
             "setsockopt TCP_NOTSENT_LOWAT"));
  if (!tight) return {};
  return option(socket, SOL_SOCKET, SO_RCVBUF, kTightUnread, "setsockopt SO_RCVBUF");
}

base::Status set_low_mark(int socket, std::size_t bytes) {
  return option(socket, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(bytes), "setsockopt SO_RCVLOWAT");
}

base::Status reset_at_close(int socket) {
  const linger off = {.l_onoff = 1, .l_linger = 0};
  if (::setsockopt(socket, SOL_SOCKET, SO_LINGER, &off, sizeof off) != 0) {
    return base::system_error("setsockopt SO_LINGER");
  }
  return {};
}

base::Status shut_down_write(int socket) {
  if (::shutdown(socket, SHUT_WR) != 0) return base::system_error("shutdown");
  return {};
}

base::Status shut_down_read(int socket) {
  if (::shutdown(socket, SHUT_RD) != 0) return base::system_error("shutdown");
  return {};
}

base::Status set_pipe_size(int pipe, std::size_t bytes) {
  if (::fcntl(pipe, F_SETPIPE_SZ, static_cast<int>(bytes)) < 0) {
    return base::system_error("fcntl F_SETPIPE_SZ");
  }
  return {};
}

base::Result<std::pair<base::Fd, base::Fd>> pipe_nonblocking() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return base::system_error("pipe2");
  return std::pair(base::Fd(ends[0]), base::Fd(ends[1]));
}

base::Status ask_for_destination(int socket, bool v6) {
  return v6 ? option(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, "setsockopt IPV6_RECVPKTINFO")
            : option(socket, IPPROTO_IP, IP_PKTINFO, 1, "setsockopt IP_PKTINFO");
}

base::Result<std::optional<Datagram>> receive_datagram(int socket, std::size_t most) {
  Datagram datagram;
  datagram.bytes.resize(most);
  Socket from;
  iovec part = {datagram.bytes.data(), datagram.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in6_pktinfo)) + CMSG_SPACE(sizeof(in_pktinfo))];
  msghdr message = {};
  message.msg_name = from.raw();
  message.msg_namelen = from.size;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const Moved got = moved([&] { return ::recvmsg(socket, &message, MSG_DONTWAIT); });
  if (got.error == EAGAIN) return std::optional<Datagram>();
  if (got.failed()) return base::system_error("recvmsg", got.error);
  const auto sender = to_endpoint(from);
  if (!sender) return base::system_error("recvmsg", EAFNOSUPPORT);
  datagram.from = *sender;
  // A datagram that was cut is handed on empty, which no reader takes for a message.
  datagram.bytes.resize((message.msg_flags & MSG_TRUNC) != 0 ? 0 : got.bytes);
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_PKTINFO) {
      in_pktinfo where{};
      std::memcpy(&where, CMSG_DATA(header), sizeof where);
      std::memcpy(datagram.to.address.data(), &where.ipi_addr, 4);
    }
    if (header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo where{};
      std::memcpy(&where, CMSG_DATA(header), sizeof where);
      datagram.to.v6 = true;
      std::memcpy(datagram.to.address.data(), &where.ipi6_addr, 16);
    }
  }
  return datagram;
}

base::Status answer_datagram(int socket, const Datagram& datagram, std::string_view bytes) {
  Socket to = to_socket(datagram.from);
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in6_pktinfo))] = {};
  msghdr message = {};
  message.msg_name = to.raw();
  message.msg_namelen = to.size;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  if (datagram.to.v6) {
    in6_pktinfo where{};
    std::memcpy(&where.ipi6_addr, datagram.to.address.data(), 16);
    message.msg_controllen = CMSG_SPACE(sizeof where);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_IPV6;
    header->cmsg_type = IPV6_PKTINFO;
    header->cmsg_len = CMSG_LEN(sizeof where);
    std::memcpy(CMSG_DATA(header), &where, sizeof where);
  } else {
    in_pktinfo where{};
    std::memcpy(&where.ipi_spec_dst, datagram.to.address.data(), 4);
    message.msg_controllen = CMSG_SPACE(sizeof where);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_IP;
    header->cmsg_type = IP_PKTINFO;
    header->cmsg_len = CMSG_LEN(sizeof where);
    std::memcpy(CMSG_DATA(header), &where, sizeof where);
  }
  const Moved sent =
      moved([&] { return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL); });
  if (sent.failed()) return base::system_error("sendmsg", sent.error);
  return {};
}

Sent send_messages(int socket, std::span<const std::string> messages) {
  constexpr std::size_t kMost = 32;
  Sent sent;
  while (sent.count < messages.size()) {
    const std::size_t count = std::min(kMost, messages.size() - sent.count);
    iovec parts[kMost];
    mmsghdr headers[kMost] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& bytes = messages[sent.count + i];
      parts[i] = {const_cast<char*>(bytes.data()), bytes.size()};
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
    int went = -1;
    do {
      went = ::sendmmsg(socket, headers, static_cast<unsigned>(count), MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (went < 0 && errno == EINTR);
    if (went < 0) {
      sent.error = errno;
      return sent;
    }
    sent.count += static_cast<std::size_t>(went);
  }
  return sent;
}

bool wait_writable(int fd, int ms) {
  pollfd wait = {.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&wait, 1, ms) > 0 && (wait.revents & POLLOUT) != 0;
}

}  // namespace os
