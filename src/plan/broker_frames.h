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
// One descriptor comes along: a memfd with the Plan as plan::change() made it, by whose bindings
// the broker judges from now on. Answered by BrokerChanged.
struct BrokerChange {
  template <class W>
  void fields(W&) {}
};
using ToBroker = std::variant<BrokerSecrets, BrokerRevoke, BrokerChange>;

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
struct BrokerChanged {
  template <class W>
  void fields(W&) {}
};
using FromBroker = std::variant<BrokerReady, BrokerRevoked, BrokerChanged>;

// --- gateway → broker and back, one answer a request, in any order -------------------------------

struct LeaseRequest {
  std::uint64_t id = 0;  // the answer has the same
  std::string credential;
  std::string host;  // canonical
  std::uint16_t port = 0;
  std::string method;
  std::string path;           // canonical, without the query
  bool verified_tls = false;  // the upstream's certificate was verified for `host`
  std::string placeholder;    // as seen in the bound place; "" when the request carries none
  std::string date;           // YYYYMMDD of a signature of AWS, else ""
  // Of a session with PostgreSQL, what its server asks the password to be salted with (RFC 5802).
  std::string salt = {};
  std::uint64_t iterations = 0;
  template <class W>
  void fields(W& w) {
    w(id, credential, host, port, method, path, verified_tls, placeholder, date, salt, iterations);
  }
};
struct LeaseAnswer {
  std::uint64_t id = 0;
  std::string refusal;  // "" when granted; else unknown, host, port, method, path, placeholder,
                        // tls, expired, uses, revoked, date, mint (no key can be had now), journal
  // The bare secret; for a signature of AWS the signing key of that day, region and service, never
  // the account's own; for PostgreSQL the salted password, never the password. Wipe all three after
  // use.
  std::string secret;
  std::string access_key;
  std::string session_token;
  template <class W>
  void fields(W& w) {
    w(id, refusal, secret, access_key, session_token);
  }
};

}  // namespace plan
