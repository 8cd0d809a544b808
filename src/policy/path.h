// Path patterns inside the module: `*` is one segment, `**` at the end is the rest.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"

namespace policy {

// A pattern of the policy in canonical form, its literal segments spelled as canonical_path()
// spells them. bad_input (without a place) for what no request can have.
[[nodiscard]] base::Result<std::string> canonical_pattern(std::string_view pattern,
                                                          bool encoded_slash);

// Whether a canonical path matches; `/v1/**` is `/v1/` and below, not `/v1`.
[[nodiscard]] bool path_matches(std::string_view pattern, std::string_view path);

// Whether every path that matches `narrow` matches `wide`.
[[nodiscard]] bool path_contains(std::string_view wide, std::string_view narrow);

// Whether some path matches both.
[[nodiscard]] bool paths_intersect(std::string_view a, std::string_view b);

// The path as the laxest server reads it: encoded slashes are slashes, parameters after `;` are cut
// off. Denials are matched against it as well.
[[nodiscard]] std::string loosest_path(std::string_view path);

}  // namespace policy
