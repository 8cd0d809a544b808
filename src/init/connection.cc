// One connection to a server inside, from init's child.
#include "init/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/base.h"
#include "confine/confine.h"
#include "init/session.h"
#include "os/duplex.h"

namespace init {
namespace {

constexpr int kPatienceMs = 10'000;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

// The sandbox's loopback.
Address address_of(int family, std::uint16_t port) {
  Address address = {};
  const auto in_order = static_cast<in_port_t>(port >> 8 | port << 8);
  if (family == AF_INET) {
    address.v4 = {AF_INET, in_order, {0x0100007f}, {}};
  } else {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = in_order;
    address.v6.sin6_addr.s6_addr[15] = 1;
  }
  return address;
}

socklen_t size_of(int family) {
  return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

base::Fd stream_socket(int family) {
  return base::Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// 0, or the errno.
int wait_connected(int socket) {
  pollfd polled = {socket, POLLOUT, 0};
  if (::poll(&polled, 1, kPatienceMs) != 1) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

int connect_to(int family, std::uint16_t port, base::Fd& socket) {
  socket = stream_socket(family);
  if (!socket.open()) return errno;
  const Address address = address_of(family, port);
  if (::connect(socket.get(), &address.any, size_of(family)) == 0) return 0;
  return errno == EINPROGRESS ? wait_connected(socket.get()) : errno;
}

// A port that can be had has no listener. A server that serves one connection only is not spent on
// being looked at.
int look_at(int family, std::uint16_t port) {
  const base::Fd socket = stream_socket(family);
  if (!socket.open()) return errno;
  const int on = 1;
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) {
    (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  const Address address = address_of(family, port);
  if (::bind(socket.get(), &address.any, size_of(family)) == 0) return ECONNREFUSED;
  // EACCES: a port that only root may have, of which this cannot tell.
  return errno == EADDRINUSE || errno == EACCES ? 0 : errno;
}

// The loopback of version 4, else of version 6; what the first said where both refuse.
int reach(const frame::Connect& connect, base::Fd& socket) {
  const auto attempt = [&](int family) {
    return connect.reach == frame::Reach::look ? look_at(family, connect.port)
                                               : connect_to(family, connect.port, socket);
  };
  const int error = attempt(AF_INET);
  return error == 0 || attempt(AF_INET6) == 0 ? 0 : error;
}

void copy(int near, int far) {
  os::Duplex copying(near, far);
  while (!copying.over()) {
    std::array<pollfd, os::Duplex::kPolled> polled = copying.wants();
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    copying.act(polled);
  }
}

// In the child. Nothing of init but the socket stays open.
int become_connection(const frame::Connect& connect, int socket) {
  constexpr int kSocket = 3;
  if (::setsid() < 0 || ::dup2(socket, kSocket) < 0 || !confine::close_from(kSocket + 1)) return 1;
  base::Fd server;
  int error = EPERM;
  if (give_up_all(connect.uid, connect.gid)) error = reach(connect, server);
  if (error == 0 && !confine::install(confine::filter(confine::Own::connection))) error = EPERM;
  const char answer = static_cast<char>(error);
  if (::send(kSocket, &answer, 1, MSG_NOSIGNAL) != 1 || error != 0 || !server.open()) return 0;
  copy(kSocket, server.get());
  return 0;
}

}  // namespace

pid_t begin_connection(const frame::Connect& connect, int socket) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(become_connection(connect, socket));
  if (pid < 0) {
    const char answer = static_cast<char>(errno);
    (void)::send(socket, &answer, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  return pid;
}

}  // namespace init
