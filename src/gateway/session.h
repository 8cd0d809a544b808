// One connection from inside, from its first byte to its last. Read session.cc: it is the flow.
#pragma once

#include "gateway/core.h"

namespace gateway {

// Serves an accepted socket. Records at least one decision before anything leaves for it.
asio::awaitable<void> serve_session(Core& core, base::Fd socket);

}  // namespace gateway
