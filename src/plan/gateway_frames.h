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
// In the place of GatewayServe, where there is no sandbox: listening sockets come as descriptors,
// and the explicit proxy answers there whoever shows the token whose SHA-256 this is (hex).
struct GatewayListen {
  std::string token_sha256;
  template <class W>
  void fields(W& w) {
    w(token_sha256);
  }
};
// Close every connection that uses the credential ("" for all) and refuse it from now on.
struct GatewayRevoke {
  std::string credential;
  template <class W>
  void fields(W& w) {
    w(credential);
  }
};
// Before GatewayServe, where network.upstream_proxy has `auth`; one descriptor comes along: a memfd
// with the password.
struct GatewayProxyPassword {
  template <class W>
  void fields(W&) {}
};
// One descriptor comes along: a memfd with the Plan as plan::change() made it, in force from now
// on. Answered by GatewayChanged.
struct GatewayChange {
  template <class W>
  void fields(W&) {}
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
using ToGateway = std::variant<GatewayServe, GatewayRevoke, GatewayCut, GatewayDrain, GatewayChange,
                               GatewayProxyPassword, GatewayListen>;

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
struct GatewayChanged {
  template <class W>
  void fields(W&) {}
};
using FromGateway = std::variant<GatewayReady, GatewayDrained, GatewayChanged>;

}  // namespace plan
