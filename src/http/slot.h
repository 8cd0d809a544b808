// The one place of a request that a credential is bound to, and how a secret gets there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "http/request.h"

namespace http {

enum class Place {
  header,
  basic,  // a header with `Basic base64(user:SECRET)`
  query,  // the value of a parameter
  path,   // a segment
  body,   // a field of a form or of a JSON object
  sigv4,  // the id of a key in a signature of AWS; what signs goes nowhere
  none,   // nowhere in a request: a client certificate, the secret key of AWS
};

struct Slot {
  Place place = Place::header;
  std::string header = "authorization";  // lower case: header, basic
  std::string user;                      // basic
  std::string before;                    // what stands around the secret: all but basic
  std::string after;
  std::string name;         // query, body
  std::size_t segment = 0;  // path: from 1
};
// A slot for the policy's `format` ("Bearer {secret}") in a header.
[[nodiscard]] Slot header_slot(std::string_view header, std::string_view format);
// Sets what stands around the secret by `format`.
void set_format(Slot& slot, std::string_view format);

// What stands in the place with `secret` in it, before it is escaped for the place.
[[nodiscard]] std::string render(const Slot& slot, std::string_view secret);
// `Basic …` with this pair.
[[nodiscard]] std::string basic_value(std::string_view user, std::string_view secret);

// Puts `secret` into the head where the slot is in one (not Place::body): in place of
// `placeholder`, and where that is "" as the only value of its field, parameter or segment.
void put_secret(RequestHead& head, const Slot& slot, std::string_view placeholder,
                std::string_view secret);

// The decoded segment of a target's path, from 1; "" where there is none.
[[nodiscard]] std::string path_segment(std::string_view target, std::size_t segment);
// The target with that segment replaced by `escaped`.
[[nodiscard]] std::string with_segment(std::string_view target, std::size_t segment,
                                       std::string_view escaped);
// The target with another query, without one where that is "".
[[nodiscard]] std::string with_query(std::string_view target, std::string_view query);

}  // namespace http
