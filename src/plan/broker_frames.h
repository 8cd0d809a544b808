// What the broker hears from the supervisor (kFdControl) and from the gateway (kFdBroker).
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/base.h"

namespace plan {

// --- supervisor → broker -----------------------------------------------------------------------

// First message: `count` memfds come as descriptors, one a credential in the policy's order. Past
// ipc::kMaxFds the same message is sent again with the next ones, until `count` descriptors have
// come. The broker empties them.
struct BrokerSecrets {
  std::uint64_t count = 0;
  template <class W>
  void fields(W& w) {
    w(count);
  }
};
// Revokes one credential ("" for all): `why` is "run ended", "detector", "operator". Answered by
// BrokerRevoked.
struct BrokerRevoke {
  std::string credential;
  std::string why;
  template <class W>
  void fields(W& w) {
    w(credential, why);
  }
};
using ToBroker = std::variant<BrokerSecrets, BrokerRevoke>;

// --- broker → supervisor -----------------------------------------------------------------------

// Secrets are held and the process is confined; `problem` is an error line when one cannot be used
// (then it ends).
struct BrokerReady {
  std::string problem;
  template <class W>
  void fields(W& w) {
    w(problem);
  }
};
struct BrokerRevoked {
  template <class W>
  void fields(W&) {}
};
using FromBroker = std::variant<BrokerReady, BrokerRevoked>;

// --- gateway → broker and back, one answer a request, in order
// --------------------------------------

struct LeaseRequest {
  std::string credential;
  std::string host;  // canonical
  std::uint16_t port = 0;
  std::string method;
  std::string path;           // canonical, without the query
  bool verified_tls = false;  // the upstream's certificate was verified for `host`
  std::string placeholder;    // as seen in the bound place; "" when the request carries none
  template <class W>
  void fields(W& w) {
    w(credential, host, port, method, path, verified_tls, placeholder);
  }
};
struct LeaseAnswer {
  std::string refusal;  // "" when granted; else unknown, host, port, method, path, placeholder,
                        // tls, expired, uses, revoked
  std::string secret;   // the bare secret: wipe after use
  template <class W>
  void fields(W& w) {
    w(refusal, secret);
  }
};

}  // namespace plan
