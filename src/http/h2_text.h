// Heads of HTTP/2 as the text of HTTP/1.1, and back: one admission then judges both protocols.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/field.h"

namespace http {

enum class H2Ends { here, later };  // whether a body follows a head

// Whether a field may be looked at at all: no line break or NUL in a value, and neither these nor
// white space in a name or a pseudo-header (N112).
[[nodiscard]] bool h2_field_holds(std::string_view name, std::string_view value);

// A request's head as parse_request() takes it. What is wrong stays wrong: another scheme becomes
// an absolute target and a Host beside another :authority a second Host, which are rejected there.
// A body without a length is chunked.
[[nodiscard]] std::string h2_request_text(const std::vector<Field>& fields, H2Ends ends);
// An answer's head as parse_response() takes it.
[[nodiscard]] std::string h2_response_text(const std::vector<Field>& fields,
                                           std::string_view request_method, H2Ends ends);

// A head of HTTP/1.1 as our own code writes it, for HTTP/2: pseudo-headers first, nothing of the
// connection, and how the body behind it is framed in the text.
struct H2Head {
  std::vector<Field> fields;
  Body body;
  bool interim = false;  // an answer; another head follows
};
// With `te: trailers`, since trailers are always taken. bad head: a rejection of status 500.
[[nodiscard]] Parsed<H2Head> h2_request_fields(std::string_view head);
[[nodiscard]] Parsed<H2Head> h2_response_fields(std::string_view head,
                                                std::string_view request_method);

}  // namespace http
