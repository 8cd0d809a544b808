// The first look.
#include "gateway/opening.h"

#include <cerrno>

namespace gateway {

bool like_http(char first) {
  return (first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z');
}

asio::awaitable<Opening> look(Connection& connection) {
  Opening opening;
  std::size_t seen = 0;
  while (true) {
    // Nothing is awaited between the peek and the last use of the shared buffer.
    auto& buffer = connection.core.scratch;
    const os::Moved got = os::peek(connection.client->fd(), buffer);
    if (got.failed() && got.error != EAGAIN) {
      opening.problem = "closed";
      break;
    }
    if (got.error != EAGAIN) {
      if (got.bytes ==
          seen) {  // no more than before, although the socket said that there is: the end
        opening.problem = seen == 0 ? "closed" : "cut-hello";
        break;
      }
      seen = got.bytes;
      const http::HelloResult result = http::read_hello({buffer.data(), got.bytes});
      if (result.kind == http::HelloKind::not_tls) {
        if (like_http(buffer[0])) opening.scheme = policy::Scheme::http;
        break;
      }
      opening.scheme = policy::Scheme::tls;
      if (result.kind == http::HelloKind::malformed) {
        opening.problem = result.reason;
        break;
      }
      if (result.kind == http::HelloKind::hello) {
        opening.hello = result.hello;
        break;
      }
      // Woken only by what is new, so that one byte at a time costs no more than a look each (N61).
      (void)os::set_low_mark(connection.client->fd(), seen + 1);
    }
    connection.client->arm_read();
    if (!co_await connection.pause()) {
      opening.problem = seen == 0 ? "no-bytes" : "slow-hello";
      break;
    }
  }
  opening.silent = seen == 0 && !opening.problem.empty();
  if (seen != 0 && connection.client->open()) (void)os::set_low_mark(connection.client->fd(), 1);
  co_return opening;
}

asio::awaitable<void> part(Connection& connection, std::string words) {
  if (words.empty() || connection.stopped()) {
    connection.client->reset();
    co_return;
  }
  // What the peer has sent is taken out first: unread bytes would turn our close into a reset that
  // overtakes the words.
  connection.allow(connection.core.limits.linger);
  (void)connection.client->try_read(connection.core.scratch);
  if (co_await connection.write(*connection.client, words) != 0) co_return;
  connection.client->shut_down_write();
  for (int reads = 0; reads < 64; ++reads) {
    const os::Moved got = co_await connection.read(*connection.client, connection.core.scratch);
    if (got.failed() || got.end()) co_return;
  }
}

asio::awaitable<void> turn_away(Connection& connection, policy::Scheme scheme,
                                std::string http_answer) {
  if (connection.waits) {
    const bool socks = connection.way == Way::socks;
    co_return co_await part(connection, socks ? http::socks_reply(http::SocksReply::not_allowed)
                                              : std::move(http_answer));
  }
  co_await part(connection, scheme == policy::Scheme::tls    ? http::access_denied_alert()
                            : scheme == policy::Scheme::http ? std::move(http_answer)
                                                             : std::string());
}

asio::awaitable<int> open_tunnel(Connection& connection) {
  if (!std::exchange(connection.waits, false)) co_return 0;
  co_return co_await connection.write(
      *connection.client, connection.way == Way::socks ? http::socks_reply(http::SocksReply::done)
                                                       : http::tunnel_response());
}

asio::awaitable<void> no_way(Connection& connection, http::Refusal refusal) {
  if (!connection.waits) {
    connection.client->reset();
    co_return;
  }
  co_await part(connection, connection.way == Way::socks
                                ? http::socks_reply(http::SocksReply::host_unreachable)
                                : http::refusal_response(502, refusal, http::After::close));
}

}  // namespace gateway
