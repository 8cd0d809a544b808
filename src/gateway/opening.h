// What a connection's first bytes say, without taking them out of the socket.
#pragma once

#include <string>

#include "gateway/core.h"
#include "http/http.h"

namespace gateway {

struct Opening {
  policy::Scheme scheme = policy::Scheme::tcp;  // tls or http; tcp: nothing that is known
  http::Hello hello;                            // of Scheme::tls
  bool silent = false;                          // ended, or overstayed, without a byte
  std::string problem;  // "closed", "no-bytes", or why a ClientHello is malformed
};

// Sleeps until the bytes tell, within Limits::first_bytes. They stay where they are, so that a
// tunnel forwards the ClientHello as it came.
asio::awaitable<Opening> look(Connection& connection);

// Whether a connection that starts with this byte may be HTTP: a method starts with a letter. Every
// other protocol that does is told by the HTTP parser.
[[nodiscard]] bool like_http(char first);

// Says the last words and sees that they are heard; without words a reset.
asio::awaitable<void> part(Connection& connection, std::string words);
// Refuses in the peer's own words, where there are any: as the proxy that it waits for, with a TLS
// alert, an HTTP response (`http_answer`, may be empty), else a reset.
asio::awaitable<void> turn_away(Connection& connection, policy::Scheme scheme,
                                std::string http_answer);
// Tells a proxy's client that its tunnel is open; 0 or errno. Nothing where nobody waits.
asio::awaitable<int> open_tunnel(Connection& connection);
// Tells a proxy's client why there is no way to where it may go; else resets.
asio::awaitable<void> no_way(Connection& connection, http::Refusal refusal);

}  // namespace gateway
