// A request head: parsed once, strictly, and written again from the parsed value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/field.h"

namespace http {

// Which kind of connection the head came in on: it decides which target forms are legal.
enum class Leg {
  plain,  // captured plain HTTP: origin-form, or absolute-form with http:// and the same Host
  tls,    // inside a terminated TLS connection: origin-form only
  proxy,  // the explicit proxy: absolute-form with http://, or CONNECT
};

enum class Strictness {
  strict,
  // Positive control of Protection::strict_http: Content-Length beside Transfer-Encoding is read
  // by its length and both are written on, as careless proxies do.
  careless,
};

struct Admission {
  Leg leg = Leg::plain;
  Strictness strictness = Strictness::strict;
  // Lower-case names that credentials are injected under: a name that a CGI-style server would
  // fold onto one of them (`x_api_key`) is rejected. The usual ones are known anyway.
  std::vector<std::string> protected_names;
};

// What the policy judges and what is sent: there is nothing else. Hop-by-hop fields (also those
// that Connection names), Proxy-*, Forwarded, X-Forwarded-*, Via, method and path overrides are
// gone from `fields`; Host, Content-Length, Transfer-Encoding, Connection, Expect and Upgrade live
// in members.
struct RequestHead {
  std::string method;  // as sent, case-sensitive
  std::string target;  // origin-form with the query; "*" of OPTIONS; "host:port" of CONNECT
  std::string host;    // lower case; an IPv6 literal with brackets; "" only on HTTP/1.0
  std::optional<std::uint16_t> port;  // as written in Host or the target
  unsigned minor = 1;                 // HTTP/1.0 or HTTP/1.1
  std::vector<Field> fields;
  Body body;
  bool keep_alive = true;  // for HTTP/1.0 only where Connection says keep-alive
  bool expect_continue = false;
  bool websocket = false;  // a well-formed WebSocket handshake (RFC 6455 section 4.1)
  bool operator==(const RequestHead&) const = default;
};

// Parses one whole head (find_head_end() gave its length). Rejections: 400 malformed or ambiguous,
// 405 TRACE, TRACK, or CONNECT where none is taken, 414, 417 Expect, 431, 501 transfer coding,
// 505 version.
// `dropped`, where it is not nullptr, gets the fields that came and that the head does not send on:
// what a policy forbids must not come in either.
[[nodiscard]] Parsed<RequestHead> parse_request(std::string_view head, const Admission& admission,
                                                std::vector<Field>* dropped = nullptr);

// The bytes that go upstream: origin-form, HTTP/1.1, Host first, framing rewritten. For the same
// admission parse_request(write_request(x)) == x for every x that was parsed from HTTP/1.1.
[[nodiscard]] std::string write_request(const RequestHead& head);

[[nodiscard]] std::string_view path_of(const RequestHead& head);  // the target up to "?"
[[nodiscard]] std::string_view query_of(
    const RequestHead& head);  // after "?", "" when there is none

}  // namespace http
