// CONNECT as a client of an upstream proxy says it (RFC 9110 section 9.3.6), and the answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/field.h"

namespace http {

// A whole head. `authority` is "ADDRESS:PORT"; `credentials` is "user:password" for Basic, or "".
// Wipe it where there are credentials.
[[nodiscard]] std::string connect_request(std::string_view authority, std::string_view credentials);
// The status of one whole head that a proxy answered (find_head_end() gave its length); 502 for
// what is no HTTP/1 answer. Nothing else of it counts.
[[nodiscard]] Parsed<unsigned> read_connect_answer(std::string_view head);

}  // namespace http
