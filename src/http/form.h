// Fields of forms and of JSON objects: what stands in one, and the text with another value there.
//
// Nothing is substituted in a text that could be read in two ways: then it has no fields here.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/request.h"

namespace http {

// How a text holds its fields.
enum class Fields {
  none,
  form,  // application/x-www-form-urlencoded, and the query of a URL
  json,  // the members of one JSON object, not of those within it
};

// What the request's body is by Content-Type; none when it is encoded (gzip), too.
[[nodiscard]] Fields fields_of(const RequestHead& head);

// The decoded values of every field of that name, in order. A JSON value that is no text comes as
// it is written. nullopt: the text is no form, or no JSON object, or nested deeper than 64.
[[nodiscard]] std::optional<std::vector<std::string>> field_values(Fields kind,
                                                                   std::string_view text,
                                                                   std::string_view name);

// The text with `value` in every field of that name whose value is `old`, escaped as the text needs
// it.
[[nodiscard]] std::optional<std::string> with_field(Fields kind, std::string_view text,
                                                    std::string_view name, std::string_view old,
                                                    std::string_view value);
// The text with exactly one field of that name, whatever there was.
[[nodiscard]] std::optional<std::string> with_only_field(Fields kind, std::string_view text,
                                                         std::string_view name,
                                                         std::string_view value);
// The form with those fields alone that `keep` wants, by decoded name and value; the same bytes
// where it wants all.
using Keep = std::function<bool(std::string_view name, std::string_view value)>;
[[nodiscard]] std::string form_with_some(std::string_view form, const Keep& keep);

// `NAME=VALUE` and a value of one, escaped for a form.
[[nodiscard]] std::string form_value(std::string_view value);
[[nodiscard]] std::string form_pair(std::string_view name, std::string_view value);

}  // namespace http
