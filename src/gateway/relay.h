// Moves bytes between the two ends of a connection, both ways at once, until both are through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/budget.h"
#include "gateway/core.h"

namespace gateway {

struct Relayed {
  std::uint64_t up = 0;
  std::uint64_t down = 0;
  std::string problem;  // "", "idle", "reset", "budget", "max-body", "frames", "canary"
  std::optional<std::size_t> canary;  // which
};

// What was read already and comes first, and how much may flow: not a byte more is passed on.
struct RelayStart {
  std::string up = {};
  std::string down = {};
  Budget budget = {};
  std::uint64_t most_up = policy::kUnlimited;  // of this connection alone
  // What goes up is looked through for these; one that is seen breaks the relay.
  const std::vector<http::Marked>* canaries = nullptr;
  // What comes down goes through this, where it is not null; what it refuses breaks the relay.
  http::FrameRedactor* frames = nullptr;
};

// connection.client ↔ connection.upstream. An end of one direction is passed on and the other one
// keeps flowing (N124, F33). Two plain sockets are joined by splice(2) once there is much to move.
asio::awaitable<Relayed> relay(Connection& connection, RelayStart start);

}  // namespace gateway
