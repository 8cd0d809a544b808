// The run's certificate authority, the leaves it mints, and TLS contexts for both sides (OpenSSL).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/base.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace http {

// Owned; SSL_new() takes its own reference, so that a context may go while connections live on.
using TlsContext = std::shared_ptr<SSL_CTX>;

// One key pair a sandbox, made here and never written anywhere. Move-only.
class Authority {
 public:
  // `run` makes the subject unique. `clock` gives seconds since 1970. The authority is valid for
  // `lifetime_seconds` and a day before and after.
  [[nodiscard]] static base::Result<Authority> make(std::string_view run,
                                                    std::uint64_t lifetime_seconds,
                                                    std::function<std::int64_t()> clock);
  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  ~Authority();

  [[nodiscard]] const std::string& pem() const;  // the certificate, for trust stores inside

  // A context for the server side of a connection with a leaf for exactly `host` (a canonical name
  // or an IP literal without brackets): TLS 1.2 and 1.3, no renegotiation, no early data, tickets
  // that are worth nothing for another name, ALPN h2 before http/1.1. The 256 used last are kept.
  [[nodiscard]] base::Result<TlsContext> server_context(std::string_view host);

 private:
  struct State;
  explicit Authority(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class Verification {
  required,
  off,  // positive control of Protection::upstream_verify
};

// A context for connections to upstream: the given roots (PEM) and no others, TLS 1.2 at least,
// chain and name checked by OpenSSL during the handshake, ALPN http/1.1. bad_input when there is no
// root in it.
[[nodiscard]] base::Result<TlsContext> client_context(std::string_view roots_pem,
                                                      Verification verification);

// Sets SNI and the name to check (a canonical name or an IP literal) before the handshake.
[[nodiscard]] base::Status expect_peer(SSL* connection, std::string_view host);
// What this side shows when it is asked for a certificate: `pem` holds a private key without a
// password, the certificate and those between it and a root. The handshake asks for it only after
// the peer's own certificate was verified. bad_input where they do not fit; nothing of the key is
// in any message.
[[nodiscard]] base::Status present(SSL* connection, std::string_view pem);
// As a client, before the handshake: HTTP/2 where the peer speaks it, else HTTP/1.1.
[[nodiscard]] base::Status offer_http2(SSL* connection);
// As a client, before the handshake: PostgreSQL.
[[nodiscard]] base::Status offer_postgres(SSL* connection);
// After the handshake: the digest of the peer's certificate that RFC 5929 section 4.1 names; ""
// where there is none.
[[nodiscard]] std::string end_point(const SSL* connection);
// After the handshake: "h2", "http/1.1", or "" where ALPN was not spoken. Lives with `connection`.
[[nodiscard]] std::string_view agreed_protocol(const SSL* connection);
// After a failed handshake: what was wrong with the peer's certificate, "" when that was not it.
[[nodiscard]] std::string certificate_problem(const SSL* connection);

}  // namespace http
