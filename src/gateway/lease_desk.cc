// Leases by SEQPACKET messages.
#include "gateway/lease_desk.h"

#include <cerrno>

namespace gateway {
namespace {

constexpr std::size_t kMostAnswer = std::size_t{64} * 1024;

}  // namespace

void wipe(plan::LeaseAnswer& answer) {
  base::wipe(answer.secret);
  base::wipe(answer.access_key);
  base::wipe(answer.session_token);
}

base::Result<std::unique_ptr<LeaseDesk>> LeaseDesk::make(asio::io_context& io,
                                                         ipc::Channel channel) {
  auto set = os::set_nonblocking(channel.fd());
  if (!set) return std::unexpected(std::move(set).error());
  auto watched = TRY(os::duplicate(channel.fd()));
  std::unique_ptr<LeaseDesk> desk(new LeaseDesk(io, std::move(channel)));
  desk->descriptor_.assign(watched.release());
  desk->arm();
  return desk;
}

LeaseDesk::LeaseDesk(asio::io_context& io, ipc::Channel channel)
    : channel_(std::move(channel)), descriptor_(io), reader_(kMostAnswer, 0) {}

void LeaseDesk::arm() {
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& error) {
                           if (error) return;  // the desk is going away
                           receive();
                         });
}

void LeaseDesk::receive() {
  while (!lost_) {
    const auto got = reader_.next(channel_.fd());
    if (!got || *got == os::Got::end || (*got == os::Got::message && reader_.cut())) return lose();
    if (*got == os::Got::nothing) return arm();
    auto answer = base::decode<plan::LeaseAnswer>(reader_.bytes(), "lease");
    const auto found = answer ? asked_.find(answer->id) : asked_.end();
    if (found == asked_.end()) return lose();
    const auto asked = found->second;
    asked_.erase(found);
    asked->answer = std::move(*answer);
    asked->done = true;
    if (asked->who != nullptr) {
      asked->who->wake.notify();
    } else {
      wipe(asked->answer);
    }
  }
}

void LeaseDesk::lose() {
  lost_ = true;
  while (!asked_.empty()) {
    const auto asked = asked_.begin()->second;
    asked_.erase(asked_.begin());
    asked->lost = true;
    asked->done = true;
    if (asked->who != nullptr) asked->who->wake.notify();
  }
}

asio::awaitable<base::Result<plan::LeaseAnswer>> LeaseDesk::ask(Connection& connection,
                                                                plan::LeaseRequest request) {
  auto asked = std::make_shared<Asked>();
  asked->who = &connection;
  request.id = ++last_;
  if (!lost_ && !ipc::send_value(channel_, request, {})) lose();
  if (lost_) co_return base::fail(base::Kind::peer, "broker", "is gone", {});
  asked_.emplace(request.id, asked);
  connection.allow(connection.core.limits.lease);
  while (!asked->done) {
    if (co_await connection.pause()) continue;
    asked->who = nullptr;
    co_return base::fail(base::Kind::peer, "broker", "did not answer in time", {});
  }
  if (asked->lost) co_return base::fail(base::Kind::peer, "broker", "is gone", {});
  co_return std::move(asked->answer);
}

}  // namespace gateway
