// Percent-encoding of URLs and forms (RFC 3986, and + for a space in forms); private to this
// module.
#pragma once

#include <string>
#include <string_view>

namespace http {

inline constexpr std::string_view kUpperHex = "0123456789ABCDEF";

// All but RFC 3986's unreserved characters escaped, in hexadecimal `digits` (16 of them).
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view digits);
// One round; escapes that are none stay.
[[nodiscard]] std::string percent_decoded(std::string_view text);
// The same with + read as a space.
[[nodiscard]] std::string form_decoded(std::string_view text);

}  // namespace http
