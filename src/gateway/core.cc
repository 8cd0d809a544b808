// Connections, their time, and how they sleep.
#include "gateway/core.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace gateway {

std::string to_string(Way way) {
  switch (way) {
    case Way::tcp:
      return "tcp";
    case Way::http:
      return "http";
    case Way::connect:
      return "connect";
    case Way::socks:
      return "socks";
  }
  return {};
}

Connection::Connection(Core& shared, base::Fd socket)
    : core(shared),
      id(++shared.last_connection),
      conn(id),
      client(std::make_shared<SocketStream>(shared.io, std::move(socket), wake)),
      place_(shared.connections.insert(shared.connections.end(), this)),
      deadline_(Clock::now() + shared.limits.first_bytes) {
  core.bound_queue(client->fd());
}

Connection::Connection(Connection& parent)
    : core(parent.core),
      id(++core.last_connection),
      conn(parent.conn),
      way(parent.way),
      parent_(&parent),
      place_(core.connections.insert(core.connections.end(), this)),
      deadline_(Clock::now() + core.limits.head) {}

void Connection::uses(const std::string& credential) {
  credentials.push_back(credential);
  if (parent_ != nullptr &&
      std::ranges::find(parent_->credentials, credential) == parent_->credentials.end()) {
    parent_->credentials.push_back(credential);
  }
}

Connection::~Connection() {
  for (const auto& stream : {client, upstream}) {
    if (!stream) continue;
    stream->close();
    stream->detach();
  }
  core.connections.erase(place_);
}

void Connection::stop() {
  stopped_ = true;
  wake.notify();
}

void Connection::revoke() {
  revoked_ = true;
  stop();
}

std::string Connection::end_problem() const {
  if (core.cut) return "cut";
  return revoked_ ? "policy" : "idle";
}

std::vector<std::shared_ptr<Used>> Core::make_used(const policy::Policy& policy) {
  std::vector<std::shared_ptr<Used>> all(policy.egress.size());
  for (auto& used : all) used = std::make_shared<Used>();
  return all;
}

asio::awaitable<bool> Connection::pause() {
  if (!stopped_) co_await wake.wait();
  co_return !stopped_;
}

asio::awaitable<os::Moved> Connection::read(Stream& from, std::span<char> into) {
  while (true) {
    const os::Moved moved = from.try_read(into);
    if (moved.error != EAGAIN) co_return moved;
    from.arm_read();
    if (!co_await pause()) co_return os::Moved{.error = ETIMEDOUT};
  }
}

asio::awaitable<os::Moved> Connection::peek(Stream& from, std::span<char> into) {
  while (true) {
    const os::Moved moved = os::peek(from.fd(), into);
    if (moved.error != EAGAIN) co_return moved;
    from.arm_read();
    if (!co_await pause()) co_return os::Moved{.error = ETIMEDOUT};
  }
}

asio::awaitable<int> Connection::write(Stream& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const os::Moved moved = to.try_write(bytes);
    if (moved.error == EAGAIN) {
      to.arm_write();
      if (!co_await pause()) co_return ETIMEDOUT;
      continue;
    }
    if (moved.failed()) co_return moved.error;
    bytes.remove_prefix(moved.bytes);
  }
  co_return 0;
}

asio::awaitable<int> Connection::handshake(Stream& stream) {
  while (true) {
    const os::Moved moved = stream.handshake();
    if (moved.error != EAGAIN) co_return moved.error;
    stream.arm_read();
    if (!co_await pause()) co_return ETIMEDOUT;
  }
}

namespace {

// A stopped connection may end, and leave the list, before stop() returns.
void stop_each(Core& core, const std::vector<std::uint64_t>& ids, void (Connection::*stop)()) {
  for (const std::uint64_t id : ids) {
    const auto found = std::ranges::find(core.connections, id, &Connection::id);
    if (found != core.connections.end()) ((*found)->*stop)();
  }
}

template <class Which>
void stop_if(Core& core, Which which) {
  std::vector<std::uint64_t> ids;
  for (const Connection* connection : core.connections) {
    if (!connection->stopped() && which(*connection)) ids.push_back(connection->id);
  }
  stop_each(core, ids, &Connection::stop);
}

}  // namespace

void sweep(Core& core) {
  const auto now = Clock::now();
  stop_if(core, [now](const Connection& connection) { return connection.deadline() <= now; });
}

void stop_all(Core& core) {
  stop_if(core, [](const Connection&) { return true; });
}

void stop_users(Core& core, std::string_view credential) {
  stop_if(core, [credential](const Connection& connection) {
    return std::ranges::any_of(connection.credentials, [&](const std::string& used) {
      return credential.empty() || used == credential;
    });
  });
}

void revoke_all(Core& core, const std::vector<Connection*>& connections) {
  std::vector<std::uint64_t> ids;
  ids.reserve(connections.size());
  for (const Connection* connection : connections) ids.push_back(connection->id);
  stop_each(core, ids, &Connection::revoke);
}

}  // namespace gateway
