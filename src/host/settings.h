// Lines of configuration files that tools read, inside the module.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/indexes.h"

namespace host {

// `[section]`, `key = value` and `key: value`; a line that starts with white space goes on with the
// value before it where `folds`. Comments start with # or ;. Quotes around a value are taken off.
struct Setting {
  std::string section;  // as written between the brackets
  std::string key;      // lower case, _ as -
  std::string value;
};
[[nodiscard]] std::vector<Setting> read_settings(std::string_view text, bool folds);

// Words between white space.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);

// The http(s) URL without user, query and fragment; "" for anything else.
[[nodiscard]] std::string plain_url(std::string_view text);

// The text between the first `before` and the next `after` behind it; "" where they are not there.
[[nodiscard]] std::string between(std::string_view text, std::string_view before,
                                  std::string_view after);

// Adds what is an http(s) URL and not there yet.
void add_index(Indexes& indexes, std::string_view url, const std::string& from);
[[nodiscard]] std::unexpected<base::Error> no_index(std::string_view tool, std::string expected);

[[nodiscard]] base::Result<Indexes> pip_indexes(const ToolPlaces& places);
[[nodiscard]] base::Result<Indexes> npm_indexes(const ToolPlaces& places);
[[nodiscard]] base::Result<Indexes> git_indexes(const ToolPlaces& places);
[[nodiscard]] base::Result<Indexes> cargo_indexes(const ToolPlaces& places);
[[nodiscard]] base::Result<Indexes> go_indexes(const ToolPlaces& places);
[[nodiscard]] base::Result<Indexes> apt_indexes(const ToolPlaces& places);
[[nodiscard]] base::Result<Indexes> maven_indexes(const ToolPlaces& places);

[[nodiscard]] inline std::string variable(const ToolPlaces& places, const std::string& name) {
  const auto at = places.env.find(name);
  return at == places.env.end() ? std::string() : at->second;
}

}  // namespace host
