// Small questions about text that several modules ask.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace base {

[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);
[[nodiscard]] std::string to_lower(std::string_view text);  // ASCII only
[[nodiscard]] std::string to_upper(std::string_view text);  // ASCII only
[[nodiscard]] bool has_control(std::string_view text);  // ASCII control characters, DEL included
// A decimal number without sign, space or leading zeros (but "0"); nullopt else or past 2^64-1.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text);
// The candidate nearest to `word` by edit distance, if near enough to be a slip; else "".
[[nodiscard]] std::string closest(std::string_view word,
                                  std::span<const std::string_view> candidates);
[[nodiscard]] std::string hex(std::string_view bytes);     // lower case
[[nodiscard]] std::string sha256(std::string_view bytes);  // 64 lower-case hex digits
[[nodiscard]] std::string base64(std::string_view bytes);  // RFC 4648 section 4, padded
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);  // strict
// `count` random characters of a-z2-7 (five bits each) from getrandom(2).
[[nodiscard]] std::string random_base32(std::size_t count);
// Text from inside a sandbox, safe for a terminal and a log line: control characters, C1 bytes,
// bidirectional controls and invalid UTF-8 become \xNN or \u{NNNN}.
[[nodiscard]] std::string printable(std::string_view text);
// Bytes of the valid UTF-8 sequence that starts the text (1 to 4), or 0; text is not empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
// Whether a clean absolute or relative path is the folder or lies below it; everything is within
// "/".
[[nodiscard]] bool is_within(std::string_view path, std::string_view folder);
// Simple glob: `*` any run within one path segment, `**` any run, `?` one character but `/`.
[[nodiscard]] bool glob_matches(std::string_view pattern, std::string_view path);

}  // namespace base
