// One connection from inside, from its first byte to its last. Read session.cc: it is the flow.
#pragma once

#include "gateway/core.h"
#include "gateway/target.h"

namespace gateway {

// Serves an accepted socket. Records at least one decision before anything leaves for it.
asio::awaitable<void> serve_session(Core& core, base::Fd socket);
// Over the bound: where HTTP is spoken, 503 with Retry-After; else a reset. One decision.
asio::awaitable<void> serve_busy(Core& core, base::Fd socket);
// The same from where it is known where the connection goes.
asio::awaitable<void> serve_target(Connection& connection, Target target);

}  // namespace gateway
