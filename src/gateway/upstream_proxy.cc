// One connection through the caller's proxy: to it, TLS where it wants that, CONNECT, its answer.
#include "gateway/upstream_proxy.h"

#include <fmt/format.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <vector>

#include "gateway/target.h"
#include "http/connect.h"

namespace gateway {
namespace {

constexpr int kMostAddresses = 3;  // of one host, where the proxy cannot reach the earlier ones
constexpr int kMostInterim = 4;

std::unexpected<base::Error> no_way(std::string why) {
  return base::fail(base::Kind::peer, kDialError, std::move(why), {});
}

asio::awaitable<base::Result<Vetted>> addresses_of(Core& core, const policy::Host& host) {
  std::vector<policy::Address> addresses;
  if (host.is_address) {
    addresses.push_back(CO_TRY(policy::parse_address(host.name)));
  } else if (host.name == "localhost") {
    for (const char* own : {"127.0.0.1", "::1"}) addresses.push_back(*policy::parse_address(own));
  } else {
    auto found = co_await core.resolver.resolve(host.name);
    if (!found) co_return no_way("proxy-name");
    addresses = std::move(*found);
  }
  co_return core.guard.callers_own_proxy(addresses);
}

asio::awaitable<base::Status> shake_hands(Connection& connection, const policy::Host& host) {
  auto context = connection.core.upstream_tls();
  if (!context || !connection.upstream->start_tls(*context, Stream::Side::client, host.name)) {
    co_return no_way("proxy-tls");
  }
  const int error = co_await connection.handshake(*connection.upstream);
  if (error == 0) co_return base::Status();
  if (error == ETIMEDOUT) co_return no_way("proxy-timeout");
  const bool untrusted = !connection.upstream->certificate_problem().empty();
  co_return no_way(untrusted ? "proxy-certificate" : "proxy-tls");
}

// One head and not a byte more: what follows is the other end's.
asio::awaitable<base::Result<std::string>> read_head(Connection& connection) {
  std::string head;
  std::size_t seen = 0;
  while (true) {
    const auto whole = http::find_head_end(head, seen);
    if (!whole) co_return no_way("proxy-answer");
    if (*whole != 0) co_return head;
    seen = head.size();
    char byte = 0;
    const os::Moved got = co_await connection.read(*connection.upstream, {&byte, 1});
    if (got.error == ETIMEDOUT) co_return no_way("proxy-timeout");
    if (got.failed() || got.end())
      co_return no_way(head.empty() ? "proxy-refused" : "proxy-answer");
    head += byte;
  }
}

asio::awaitable<base::Result<unsigned>> ask(Connection& connection, const UpstreamProxy& proxy,
                                            Passed to, std::uint16_t port) {
  std::string request = proxy.request(to, port);
  const int error = co_await connection.write(*connection.upstream, request);
  base::wipe(request);
  if (error != 0) co_return no_way(error == ETIMEDOUT ? "proxy-timeout" : "proxy-refused");
  for (int i = 0; i < kMostInterim; ++i) {
    const std::string head = CO_TRY(co_await read_head(connection));
    const auto status = http::read_connect_answer(head);
    if (!status) co_return no_way(status.error().reason);
    if (*status >= 200) co_return *status;
  }
  co_return no_way("proxy-answer");
}

// Closes the way to the proxy when its time is over; the client's own connection lives on, so that
// it can be told.
class Patience {
 public:
  Patience(Connection& connection, std::chrono::milliseconds time)
      : timer_(connection.core.io, time), over_(std::make_shared<bool>(false)) {
    connection.allow(time + connection.core.limits.connect);
    timer_.async_wait([over = over_, stream = connection.upstream,
                       &connection](const boost::system::error_code& error) {
      if (error || *over || !stream->attached()) return;
      *over = true;
      stream->close();
      connection.wake.notify();
    });
  }
  ~Patience() { *over_ = true; }  // for a call that waits for its turn already
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;
  [[nodiscard]] bool over() const { return *over_; }

 private:
  asio::steady_timer timer_;
  std::shared_ptr<bool> over_;
};

enum class Next { open, another };  // another: the next address may do

// The status that the proxy answers, over a connection that is there.
asio::awaitable<base::Result<unsigned>> negotiate(Connection& connection,
                                                  const UpstreamProxy& proxy, Passed to,
                                                  std::uint16_t port) {
  if (proxy.place().scheme == policy::ProxyPlace::Scheme::https) {
    CO_TRY(co_await shake_hands(connection, proxy.place().host));
  }
  co_return co_await ask(connection, proxy, to, port);
}

asio::awaitable<base::Result<Next>> open_way(Connection& connection, const UpstreamProxy& proxy,
                                             Vetted own, Passed to, std::uint16_t port) {
  const Limits& limits = connection.core.limits;
  const auto there = co_await connect_to(connection, std::move(own), proxy.place().port);
  if (!there) {
    co_return no_way(there.error().number == ETIMEDOUT ? "proxy-timeout" : "proxy-unreachable");
  }
  const Patience patience(connection, limits.handshake + limits.connect);
  const auto status = co_await negotiate(connection, proxy, to, port);
  if (patience.over()) co_return no_way("proxy-timeout");
  if (!status) co_return std::unexpected(status.error());
  if (*status < 300) co_return Next::open;
  if (*status == 407) co_return no_way("proxy-auth");
  if (*status == 502 || *status == 503 || *status == 504) co_return Next::another;
  co_return no_way("proxy-refused");
}

}  // namespace

std::string UpstreamProxy::request(const Passed& to, std::uint16_t port) const {
  const std::string address = policy::to_string(to.address());
  const std::string authority =
      to.address().v6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
  if (wanted_.auth.empty()) return http::connect_request(authority, {});
  const std::string& user = wanted_.auth.at("user");
  std::string credentials;
  credentials.reserve(user.size() + 1 + password_.reveal().size());
  credentials += user;
  credentials += ':';
  credentials += password_.reveal();
  std::string head = http::connect_request(authority, credentials);
  base::wipe(credentials);
  return head;
}

asio::awaitable<base::Result<policy::Address>> dial_by_proxy(Connection& connection, Vetted vetted,
                                                             std::uint16_t port) {
  const UpstreamProxy& proxy = *connection.core.upstream_proxy;
  connection.allow(connection.core.limits.connect);
  const Vetted own = CO_TRY(co_await addresses_of(connection.core, proxy.place().host));
  int tried = 0;
  for (const Passed& to : vetted.passed) {
    if (tried++ == kMostAddresses) break;
    const auto next = co_await open_way(connection, proxy, own, to, port);
    if (next && *next == Next::open) co_return to.address();
    drop_upstream(connection);
    if (!next) co_return std::unexpected(next.error());
  }
  co_return no_way("proxy-refused");
}

}  // namespace gateway
