// From a proxy's own protocols to a target; from there on the flow is that of any connection.
#include "gateway/proxy.h"

#include "gateway/http_session.h"
#include "gateway/opening.h"
#include "gateway/proxy_token.h"
#include "gateway/session.h"
#include "plan/plan.h"

namespace gateway {
namespace {

constexpr char kSocks4 = 4;
constexpr char kSocks5 = 5;
constexpr char kTlsHandshake = 0x16;
constexpr const char* kNoMethod = "socks-method";
constexpr const char* kNoToken = "proxy-token";
// "Rejected", in the words of SOCKS4.
const std::string kSocks4Rejected("\0\x5b\0\0\0\0\0\0", 8);

asio::awaitable<void> record(Connection& connection, std::string verdict, std::string reason) {
  Decision decision;
  decision.way = to_string(connection.way);
  decision.conn = connection.id;
  decision.verdict = std::move(verdict);
  if (decision.verdict != "allow") decision.kind = "protocol";
  decision.reason = std::move(reason);
  (void)connection.core.recorder.decision(decision);
  (void)co_await connection.core.recorder.handed_over(connection.wake);
}

std::size_t needs(const http::SocksGreeting& greeting) {
  return greeting.needs;
}
std::size_t needs(std::size_t bytes) {
  return bytes;
}
std::size_t needs(const http::SocksRequest& request) {
  return request.needs;
}

// One message of SOCKS, and not a byte more: what follows may be for the tunnel. `held` gets its
// bytes.
template <class Message>
asio::awaitable<http::Parsed<Message>> read_message(
    Connection& connection, http::Parsed<Message> (*parse)(std::string_view), std::string& held) {
  while (true) {
    auto message = parse(held);
    if (!message || needs(*message) <= held.size()) co_return message;
    const std::size_t have = held.size();
    held.resize(needs(*message));
    const os::Moved got =
        co_await connection.read(*connection.client, std::span(held).subspan(have));
    if (got.failed() || got.end()) {
      co_return std::unexpected(
          http::Rejection{.status = static_cast<unsigned>(http::SocksReply::failed),
                          .reason = "incomplete",
                          .text = "the client said no more"});
    }
    held.resize(have + got.bytes);
  }
}

// Inside a sandbox, who the client says that it is makes no difference: the socket was made inside
// it, so that is who it is (N146).
asio::awaitable<http::Parsed<http::SocksRequest>> read_request(Connection& connection) {
  std::string held;
  const auto greeting = co_await read_message(connection, http::read_socks_greeting, held);
  if (!greeting) co_return std::unexpected(greeting.error());
  http::SocksMethod method = greeting->method;
  if (!connection.core.proxy_token.empty()) {
    method =
        greeting->offers_password ? http::SocksMethod::password : http::SocksMethod::unacceptable;
  }
  if (method == http::SocksMethod::unacceptable) {
    co_return std::unexpected(
        http::Rejection{.reason = kNoMethod, .text = "no login that is taken"});
  }
  (void)co_await connection.write(*connection.client, http::socks_choice(method));
  if (method == http::SocksMethod::password) {
    std::string said;
    const auto login = co_await read_message(connection, http::read_socks_login, said);
    if (!login) co_return std::unexpected(login.error());
    const bool taken = is_token(connection.core, http::socks_password(said));
    base::wipe(said);
    if (!taken) {
      co_return std::unexpected(http::Rejection{.reason = kNoToken, .text = "another token"});
    }
    (void)co_await connection.write(*connection.client, http::socks_login_taken());
  }
  held.clear();
  co_return co_await read_message(connection, http::read_socks_request, held);
}

// The last word to a client of SOCKS, in the words of the stage that it failed at.
std::string last_word(const http::Rejection& rejection) {
  if (rejection.reason == kNoMethod) return http::socks_choice(http::SocksMethod::unacceptable);
  if (rejection.reason == kNoToken) return http::socks_login_refused();
  return http::socks_reply(http::SocksReply{static_cast<std::uint8_t>(rejection.status)});
}

base::Result<Target> target_of(Core& core, const http::SocksRequest& request) {
  if (request.kind == http::SocksRequest::Kind::name) {
    return find_target(core, request.name, request.port);
  }
  return find_target(core, os::Endpoint{.v6 = request.kind == http::SocksRequest::Kind::v6,
                                        .address = request.address,
                                        .port = request.port});
}

asio::awaitable<void> serve_socks(Connection& connection) {
  connection.way = Way::socks;
  http::Parsed<http::SocksRequest> request = co_await read_request(connection);
  http::Rejection rejection;
  if (request) {
    auto target = target_of(connection.core, *request);
    if (target) {
      connection.waits = true;
      co_return co_await serve_target(connection, std::move(*target));
    }
    rejection = {.status = static_cast<unsigned>(http::SocksReply::not_allowed),
                 .reason = "host",
                 .text = target.error().what};
  } else {
    rejection = request.error();
  }
  co_await record(connection, "reject", rejection.reason);
  co_await part(connection, last_word(rejection));
}

asio::awaitable<void> serve_http(Connection& connection) {
  connection.way = Way::http;
  HttpSession session(connection, {}, http::Leg::proxy, nullptr);
  co_await session.run();
  if (!session.tunnel()) co_return;
  connection.way = Way::connect;
  connection.waits = true;
  co_await serve_target(connection, *session.tunnel());
}

}  // namespace

bool is_proxy(const os::Endpoint& destination) {
  static const auto kAddress = policy::parse_address(plan::kProxyAddress);
  return destination.port == plan::kProxyPort && to_address(destination) == *kAddress;
}

asio::awaitable<void> serve_proxy(Connection& connection) {
  char first = 0;
  const os::Moved got = co_await connection.peek(*connection.client, {&first, 1});
  if (got.bytes == 0) {
    connection.way = Way::http;
    co_return co_await record(connection, "allow", "no-request");
  }
  if (first == kSocks5) co_return co_await serve_socks(connection);
  if (first == kSocks4) {
    connection.way = Way::socks;
    co_await record(connection, "reject", "socks-version");
    co_return co_await part(connection, kSocks4Rejected);
  }
  if (first == kTlsHandshake) {
    connection.way = Way::http;
    co_await record(connection, "reject", "proxy-tls");
    co_return co_await part(connection, http::access_denied_alert());
  }
  co_await serve_http(connection);
}

asio::awaitable<void> serve_alone(Core& core, base::Fd socket) {
  Connection connection(core, std::move(socket));
  co_await serve_proxy(connection);
}

}  // namespace gateway
