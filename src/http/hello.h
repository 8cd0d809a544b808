// What a TLS ClientHello says, read from the first bytes of a connection without answering them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace http {

inline constexpr std::size_t kMaxHello =
    std::size_t{16} * 1024;  // bytes on the wire, record headers included

enum class HelloKind {
  need_more,  // so far it is a ClientHello
  not_tls,    // the first byte says so at once
  malformed,  // TLS, but not one well-formed ClientHello: close
  hello,
};

struct Hello {
  std::string server_name;        // lower case, one trailing dot removed; "" when there is none
  std::vector<std::string> alpn;  // in the client's order
  bool ech = false;  // an encrypted_client_hello extension (RFC 9849) is there, real or GREASE
  bool early_data = false;  // the client would like to send 0-RTT data
  bool tls13 = false;       // supported_versions has TLS 1.3
  bool ecdsa_p256 = false;  // signature_algorithms has ecdsa_secp256r1_sha256
  bool operator==(const Hello&) const = default;
};

struct HelloResult {
  HelloKind kind = HelloKind::need_more;
  Hello hello;         // valid for HelloKind::hello
  std::string reason;  // why it is malformed: "two-names", "sni", "record", "length", …
};

// Reads everything that has come so far, from the first byte of the connection on. A hello may be
// spread over any number of records; more than kMaxHello bytes are malformed. A server name that
// is not a host name (IP literal, NUL, empty labels, bytes other than letters, digits, - _ .) is
// malformed as well.
[[nodiscard]] HelloResult read_hello(std::string_view bytes);

// A fatal TLS alert record for a client whose hello is refused: access_denied (49).
[[nodiscard]] std::string access_denied_alert();

}  // namespace http
