// Host patterns inside the module: an exact name, "*.x" (one label more) or "**.x" (one or more).
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>

namespace policy {

inline constexpr std::size_t kExact = std::numeric_limits<std::size_t>::max();

// Whether the canonical name matches.
[[nodiscard]] bool host_matches(std::string_view pattern, std::string_view name);

// How narrow a pattern is: kExact, else the length of its suffix.
[[nodiscard]] std::size_t specificity(std::string_view pattern);

// What stands behind the stars; the name itself when there are none.
[[nodiscard]] std::string_view suffix_of(std::string_view pattern);

// Whether every name that matches `narrow` matches `wide`.
[[nodiscard]] bool host_contains(std::string_view wide, std::string_view narrow);

// Whether some name matches both.
[[nodiscard]] bool hosts_intersect(std::string_view a, std::string_view b);

}  // namespace policy
