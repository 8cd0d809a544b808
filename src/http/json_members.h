// The members of one JSON object with their places in the text; private to this module.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace http {

struct JsonMember {
  std::string name;    // decoded
  std::string value;   // decoded where it is a text, else as written
  std::size_t at = 0;  // of the value as written
  std::size_t size = 0;
};

// nullopt for anything but one whole object, or one nested deeper than 64 (RFC 8259).
[[nodiscard]] std::optional<std::vector<JsonMember>> json_members(std::string_view text);

}  // namespace http
