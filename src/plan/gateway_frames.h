// What supervisor and gateway say to each other over the gateway's control channel (kFdControl).
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/base.h"

namespace plan {

// --- supervisor → gateway ----------------------------------------------------------------------

// The capture sockets, as descriptors in this order: tcp4, tcp6, dns4, dns6, dns_tcp4, dns_tcp6,
// refused. The gateway opens none of them itself: it starts before the sandbox where its authority
// is needed for the trust bundle, and serves from this message on.
struct GatewayServe {
  template <class W>
  void fields(W&) {}
};
// Close every connection that uses the credential ("" for all) and refuse it from now on.
struct GatewayRevoke {
  std::string credential;
  template <class W>
  void fields(W& w) {
    w(credential);
  }
};
// Close every connection and refuse all from now on (detector action cut-network).
struct GatewayCut {
  template <class W>
  void fields(W&) {}
};
// The sandbox's processes are gone: record what is still in the refusal log, finish open decisions,
// answer GatewayDrained and end.
struct GatewayDrain {
  template <class W>
  void fields(W&) {}
};
using ToGateway = std::variant<GatewayServe, GatewayRevoke, GatewayCut, GatewayDrain>;

// --- gateway → supervisor ----------------------------------------------------------------------

// First message: confined and ready. `authority` is the run's own CA as PEM where plan.terminates,
// else "".
struct GatewayReady {
  std::string authority;
  template <class W>
  void fields(W& w) {
    w(authority);
  }
};
// `logged` refusals were read from the kernel's log, so that the supervisor can tell how many were
// dropped.
struct GatewayDrained {
  std::uint64_t logged = 0;
  template <class W>
  void fields(W& w) {
    w(logged);
  }
};
using FromGateway = std::variant<GatewayReady, GatewayDrained>;

}  // namespace plan
