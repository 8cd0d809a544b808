// The explicit proxy inside every sandbox with a network, for clients that want one: HTTP, CONNECT
// and SOCKS5 at one port. It grants nothing that a captured connection would not get.
#pragma once

#include "gateway/core.h"

namespace gateway {

// 198.18.0.1:3128 (contract).
[[nodiscard]] bool is_proxy(const os::Endpoint& destination);

// Serves a connection that was made to the proxy; its first byte tells what it speaks. At least one
// decision is recorded.
asio::awaitable<void> serve_proxy(Connection& connection);
// The same of a socket that was accepted where nothing is but the proxy.
asio::awaitable<void> serve_alone(Core& core, base::Fd socket);

}  // namespace gateway
