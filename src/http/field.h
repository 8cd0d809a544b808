// Header fields as values, and what every message of HTTP/1.1 has in common (RFC 9110, RFC 9112).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace http {

inline constexpr std::size_t kMaxHead =
    std::size_t{64} * 1024;  // bytes of a head, its end included
inline constexpr std::size_t kMaxTarget = std::size_t{16} * 1024;  // bytes of a request target
inline constexpr std::size_t kMaxFields = 200;

// Why bytes are not a message that goes on. `status` is what the sender is told (4xx or 501/505 for
// requests, 502 for responses), `reason` a stable word for the journal and X-Cerco-Deny, `text` one
// sentence for people. After a rejection the connection is closed: where the next message starts
// is no longer known.
struct Rejection {
  unsigned status = 400;
  std::string reason;
  std::string text;
  bool operator==(const Rejection&) const = default;
};
template <class T>
using Parsed = std::expected<T, Rejection>;

// One end-to-end field. `name` is lower case; `spelling` is how the sender wrote it and how it is
// written on ("" for a field of our own: then `name` is).
struct Field {
  std::string name;
  std::string value;  // without leading or trailing white space
  std::string spelling;
  bool operator==(const Field&) const = default;
};

// The first field of that lower-case name, or nullptr.
[[nodiscard]] const Field* find_field(const std::vector<Field>& fields, std::string_view name);
// Removes every field of that lower-case name; returns how many there were.
std::size_t remove_fields(std::vector<Field>& fields, std::string_view name);
// Leaves exactly one field of that lower-case name, at the place of the first, or at the end.
void set_field(std::vector<Field>& fields, std::string_view name, std::string_view value);

// Whether a message carries DNS, or asks for it (RFC 8484, RFC 9230, and the JSON form): its
// Content-Type or Accept says so.
[[nodiscard]] bool carries_dns(const std::vector<Field>& fields);

// How the end of a body is known.
enum class Framing {
  none,         // there is no body
  length,       // Content-Length
  chunked,      // Transfer-Encoding: chunked
  until_close,  // responses only
};
struct Body {
  Framing framing = Framing::none;
  std::uint64_t length = 0;  // Framing::length
  bool operator==(const Body&) const = default;
};

// Bytes of the head that `bytes` starts with, up to and including its empty line; 0 when more is
// needed. Rejects as soon as it can: a bare LF or CR, a NUL, more than kMaxHead (431) or a first
// line longer than kMaxTarget and a little (414). `seen` is the length that an earlier call on the
// same bytes has looked at (0 at first), so that slow senders do not make this quadratic.
[[nodiscard]] Parsed<std::size_t> find_head_end(std::string_view bytes, std::size_t seen);

}  // namespace http
