// Copying between two stream sockets.
#include "os/duplex.h"

#include <sys/socket.h>

#include <cerrno>

namespace os {
namespace {

constexpr std::size_t kPiece = std::size_t{64} * 1024;

bool would_wait() {
  return errno == EAGAIN || errno == EINTR;
}

}  // namespace

Duplex::Duplex(int left, int right) {
  ways_[0].from = ways_[1].to = left;
  ways_[1].from = ways_[0].to = right;
}

std::array<pollfd, Duplex::kPolled> Duplex::wants() const {
  std::array<pollfd, kPolled> wanted = {{{-1, 0, 0}, {-1, 0, 0}}};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const Way& out = ways_[i];     // reads from this side
    const Way& in = ways_[1 - i];  // sends to it
    short events = 0;
    if (!out.ended && out.held.empty()) events |= POLLIN;
    if (!in.held.empty()) events |= POLLOUT;
    // Asked for nothing, a side that is gone would be announced again and again.
    if (events != 0 && !over()) wanted[i] = {out.from, events, 0};
  }
  return wanted;
}

void Duplex::act(std::span<const pollfd, kPolled> polled) {
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    Way& out = ways_[i];
    Way& in = ways_[1 - i];
    if (polled[i].revents == 0) continue;
    if (!in.held.empty()) send(in);
    if (!failed_ && !out.ended && out.held.empty()) read(out);
  }
}

void Duplex::read(Way& way) {
  way.held.resize(kPiece);
  const ssize_t got = ::recv(way.from, way.held.data(), kPiece, MSG_DONTWAIT);
  const bool later = got < 0 && would_wait();
  way.held.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  way.sent = 0;
  if (got < 0 && !later) failed_ = true;
  if (got == 0) way.ended = true;
  if (!failed_ && !later) send(way);
}

void Duplex::send(Way& way) {
  while (way.sent < way.held.size()) {
    const ssize_t put = ::send(way.to, way.held.data() + way.sent, way.held.size() - way.sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put < 0 && would_wait()) return;
    if (put < 0) {
      failed_ = true;
      return;
    }
    way.sent += static_cast<std::size_t>(put);
  }
  way.held.clear();
  if (!way.ended || way.shut) return;
  way.shut = true;
  (void)::shutdown(way.to, SHUT_WR);
}

}  // namespace os
