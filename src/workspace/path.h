// Paths that a file session names: which are clean, and where a link can lead.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/base.h"

namespace workspace {

inline constexpr std::size_t kMaxDepth = 128;  // components of a path that is copied in or out
inline constexpr std::size_t kMaxPath =
    4000;  // bytes, below PATH_MAX with the folder's own path before it

// Whether a path is relative and has no empty, `.` or `..` component and no NUL.
[[nodiscard]] bool is_clean(std::string_view path);
// Whether it is within kMaxDepth, kMaxPath and 255 bytes a component.
[[nodiscard]] bool is_within_bounds(std::string_view path);
// "a/b/c" → "a/b" and "c"; "c" → "" and "c".
[[nodiscard]] std::pair<std::string, std::string> split_last(std::string_view path);

}  // namespace workspace
