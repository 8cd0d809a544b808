// The grammar that request and response heads share; private to this module.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/field.h"

namespace http {

// Classes of bytes, as bits of kClass.
enum : std::uint8_t {
  kToken = 1,      // RFC 9110 section 5.6.2
  kValue = 2,      // field content: VCHAR, SP, HTAB, obs-text
  kPath = 4,       // of a path, RFC 3986 and what clients send in spite of it: ^ ` { | } [ ]
  kQuery = 8,      // of a query: also " < >
  kHostByte = 16,  // of a name or an IPv4 literal
  kHexDigit = 32,
};
extern const std::array<std::uint8_t, 256> kClass;
[[nodiscard]] inline bool is(char c, std::uint8_t bits) {
  return (kClass[static_cast<unsigned char>(c)] & bits) != 0;
}
[[nodiscard]] bool all(std::string_view text, std::uint8_t bits);

[[nodiscard]] std::string_view trim(std::string_view text);  // SP and HTAB
// Splits a comma-separated list of tokens into lower-case ones; false when something is not a
// token.
[[nodiscard]] bool tokens(std::string_view list, std::vector<std::string>& out);
// Two texts without regard to the case of ASCII letters.
[[nodiscard]] bool same_text(std::string_view a, std::string_view b);

[[nodiscard]] std::unexpected<Rejection> reject(unsigned status, std::string_view reason,
                                                std::string_view text);

// Appends the fields of `lines` (each ends in CRLF, the empty line is not among them). Every
// rejection but 431 has `status`.
[[nodiscard]] Parsed<void> parse_fields(std::string_view lines, unsigned status,
                                        std::vector<Field>& fields);

// The first line of a head without its CRLF, and the field lines behind it.
struct HeadText {
  std::string_view first;
  std::string_view lines;
};
[[nodiscard]] std::optional<HeadText> split_head(std::string_view head);

// A decimal without sign or leading zeros, below 2^62.
[[nodiscard]] std::optional<std::uint64_t> parse_length(std::string_view text);

void write_fields(const std::vector<Field>& fields, std::string& out);

}  // namespace http
