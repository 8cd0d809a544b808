// One request of ours to a token endpoint: name, address guard, verified TLS, one bounded answer.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>

#include "gateway/core.h"

namespace gateway {

// What all fetches of a process share. The edges are those of a gateway.
struct FetchWorld {
  asio::io_context& io;
  const policy::Policy& policy;  // its egress rules are the endpoints, and there are no others
  Guard& guard;
  Resolver& resolver;
  Connector& connector;
  std::function<base::Result<http::TlsContext>()> tls;  // verifies
  std::chrono::milliseconds time{10'000};               // for the whole of it
};

inline constexpr std::size_t kMostTold = std::size_t{256} * 1024;  // bytes of an answer's body

// Does what is asked, and tells of it. No redirect is followed, no connection is kept, nothing is
// asked twice. `ask` and what was sent are wiped.
asio::awaitable<plan::MintTold> fetch(FetchWorld& world, plan::MintAsk ask);

}  // namespace gateway
