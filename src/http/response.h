// A response head: parsed strictly, and written again from the parsed value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/field.h"
#include "http/request.h"

namespace http {

// Fields that speak of the connection or lead around the gateway (Alt-Svc, Report-To, NEL, Proxy-*)
// are gone from `fields`; framing and Connection live in members.
struct ResponseHead {
  unsigned status = 200;
  std::string phrase;
  unsigned minor = 1;
  std::vector<Field> fields;
  Body body;
  // What Content-Length said where no body follows (HEAD, 304): written on, never read by.
  std::optional<std::uint64_t> stated_length;
  bool keep_alive = true;
  bool websocket = false;  // a 101 that answers the request's handshake with the right accept value
  bool operator==(const ResponseHead&) const = default;
};

// Whether more heads follow before the answer: 1xx but 101.
[[nodiscard]] bool interim(const ResponseHead& head);

// Parses one whole head that answers `request`. Every rejection has status 502: malformed, framed
// in two ways, an unknown transfer coding, a 101 that was not asked for or has a wrong accept
// value.
[[nodiscard]] Parsed<ResponseHead> parse_response(std::string_view head,
                                                  const RequestHead& request);

// The bytes that go to the client, HTTP/1.1. A caller that changes the body's length sets `body`
// first (chunked for HTTP/1.1 clients, until_close and keep_alive = false for HTTP/1.0).
[[nodiscard]] std::string write_response(const ResponseHead& head);

}  // namespace http
