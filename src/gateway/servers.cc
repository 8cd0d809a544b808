// Loops that outlive every error of a single connection (F28): only close() ends them.
#include "gateway/servers.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>

#include "gateway/proxy.h"
#include "gateway/session.h"

namespace gateway {
namespace {

constexpr int kTurn = 32;
constexpr std::chrono::milliseconds kBackOff{50};
constexpr std::size_t kMostUdp = 512;
constexpr std::size_t kMostTcp = 4096;

// A coroutine of ours does not throw; if one does, something is broken that nobody knows the extent
// of.
void must_not_throw(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

// Questions over TCP: each with its length before it (RFC 7766).
asio::awaitable<void> serve_questions(Core& core, Dns& dns, base::Fd socket) {
  Connection connection(core, std::move(socket));
  std::string held;
  while (true) {
    connection.allow(core.limits.first_bytes);
    while (held.size() < 2 || held.size() < 2U + (static_cast<unsigned char>(held[0]) << 8 |
                                                  static_cast<unsigned char>(held[1]))) {
      char buffer[1024];
      const os::Moved got = co_await connection.read(*connection.client, buffer);
      if (got.failed() || got.end() || held.size() + got.bytes > kMostTcp) co_return;
      held.append(buffer, got.bytes);
    }
    const std::size_t length = static_cast<std::size_t>(static_cast<unsigned char>(held[0]) << 8 |
                                                        static_cast<unsigned char>(held[1]));
    const auto answer = dns.answer(std::string_view(held).substr(2, length), kMostTcp);
    held.erase(0, 2 + length);
    if (!answer) co_return;
    std::string framed;
    framed += static_cast<char>(answer->size() >> 8);
    framed += static_cast<char>(answer->size() & 0xff);
    framed += *answer;
    if (co_await connection.write(*connection.client, framed) != 0) co_return;
  }
}

}  // namespace

struct Servers::Door {
  Door(asio::io_context& io, base::Fd socket, Kind what)
      : descriptor(io, socket.release()), pause(io), kind(what) {}
  asio::posix::stream_descriptor descriptor;
  asio::steady_timer pause;
  Kind kind;
};

base::Status Servers::open(CaptureSockets sockets) {
  TRY(add(std::move(sockets.tcp4), Kind::connections));
  TRY(add(std::move(sockets.tcp6), Kind::connections));
  TRY(add(std::move(sockets.dns4), Kind::questions));
  TRY(add(std::move(sockets.dns6), Kind::questions));
  TRY(add(std::move(sockets.dns_tcp4), Kind::question_streams));
  TRY(add(std::move(sockets.dns_tcp6), Kind::question_streams));
  return add(std::move(sockets.refused), Kind::log);
}

base::Status Servers::open_proxy(std::vector<base::Fd> sockets) {
  for (base::Fd& socket : sockets) TRY(add(std::move(socket), Kind::proxy));
  return {};
}

base::Status Servers::add(base::Fd socket, Kind kind) {
  if (!socket.open()) return {};
  auto set = os::set_nonblocking(socket.get());
  if (!set) return set;
  doors_.push_back(std::make_shared<Door>(core_.io, std::move(socket), kind));
  asio::co_spawn(core_.io, run(doors_.back()), must_not_throw);
  return {};
}

void Servers::close() {
  for (const auto& door : doors_) {
    boost::system::error_code ignored;
    door->descriptor.close(ignored);
    door->pause.cancel();
  }
  doors_.clear();
}

void Servers::drain_log() {
  for (const auto& door : doors_) {
    if (door->kind == Kind::log) refused_.read(door->descriptor.native_handle());
  }
}

asio::awaitable<void> Servers::run(std::shared_ptr<Door> door) {
  while (door->descriptor.is_open()) {
    boost::system::error_code error;
    co_await door->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                         asio::redirect_error(asio::use_awaitable, error));
    if (error || !door->descriptor.is_open()) co_return;
    if (take(*door)) continue;
    door->pause.expires_after(kBackOff);
    co_await door->pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
}

bool Servers::take(Door& door) {
  busy_();
  switch (door.kind) {
    case Kind::connections:
    case Kind::question_streams:
    case Kind::proxy:
      return take_connections(door);
    case Kind::questions:
      take_questions(door);
      return true;
    case Kind::log:
      refused_.read(door.descriptor.native_handle());
      return true;
  }
  return true;
}

bool Servers::take_connections(Door& door) {
  for (int turn = 0; turn < kTurn; ++turn) {
    const bool over = over_bound();
    // Whoever is over the bound waits in the kernel's queue, but not for long.
    if (over && Clock::now() - *full_since_ < core_.limits.queued) return false;
    auto socket = os::accept(door.descriptor.native_handle());
    if (!socket) {
      const int error = socket.error().number;
      if (error == EAGAIN) return true;
      if (error == ECONNABORTED || error == EPROTO || error == ENETDOWN) continue;
      return false;
    }
    if (over) {
      if (core_.connections.size() >= core_.limits.connections + core_.limits.turned_away) {
        (void)os::reset_at_close(socket->get());
      } else if (door.kind == Kind::connections) {
        asio::co_spawn(core_.io, serve_busy(core_, std::move(*socket)), must_not_throw);
      }
    } else if (door.kind == Kind::proxy) {
      asio::co_spawn(core_.io, serve_alone(core_, std::move(*socket)), must_not_throw);
    } else if (door.kind == Kind::connections) {
      asio::co_spawn(core_.io, serve_session(core_, std::move(*socket)), must_not_throw);
    } else {
      asio::co_spawn(core_.io, serve_questions(core_, dns_, std::move(*socket)), must_not_throw);
    }
  }
  return true;
}

bool Servers::over_bound() {
  if (core_.connections.size() < core_.limits.connections) {
    full_since_.reset();
    return false;
  }
  if (!full_since_) full_since_ = Clock::now();
  return true;
}

void Servers::take_questions(Door& door) {
  const int socket = door.descriptor.native_handle();
  for (int turn = 0; turn < kTurn; ++turn) {
    const auto datagram = os::receive_datagram(socket, kMostUdp);
    // A failed read of one datagram (a port that is gone, say) is that asker's.
    if (!datagram) continue;
    if (!*datagram) return;
    const auto answer = dns_.answer((*datagram)->bytes, kMostUdp);
    if (answer) (void)os::answer_datagram(socket, **datagram, *answer);
  }
}

}  // namespace gateway
