// A session with PostgreSQL whose password the gateway proves: the client needs none, or shows its
// placeholder.
#pragma once

#include "gateway/core.h"
#include "gateway/relay.h"
#include "gateway/target.h"

namespace gateway {

struct PostgresStart {
  const Target& target;  // with its vetted addresses
  Budget budget = {};    // of what flows once the session is open
};

// From the client's first byte to the session's end. `problem` beside those of a relay: "protocol",
// "postgres-user" (no credential is bound to it), "own-credential", "credential-…", "upstream",
// "upstream-tls", "upstream-certificate", "postgres-auth" (the server asks for something else than
// SCRAM-SHA-256, or does not prove that it knows the password), "postgres-refused" (the server's
// own error, which the client was given).
asio::awaitable<Relayed> serve_postgres(Connection& connection, PostgresStart start);

}  // namespace gateway
