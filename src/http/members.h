// Single values out of the answers of token endpoints: JSON by a path of names, XML by an element.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace http {

// The member at a path of names joined with dots ("data.lease_id") of one JSON object: a text
// decoded, a number or a boolean as it is written. nullopt where there is none, where it is null, a
// list or an object, where its name stands twice, and for anything but one whole object.
[[nodiscard]] std::optional<std::string> json_value(std::string_view text, std::string_view path);
// The text of the one element `<NAME>…</NAME>` without attributes and elements in it, its five
// named characters decoded. nullopt where there is none or more than one.
[[nodiscard]] std::optional<std::string> xml_value(std::string_view text, std::string_view name);

}  // namespace http
