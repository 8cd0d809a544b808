// Where a run may write on the host: `--out` and `--report` touch neither cerco's own state nor
// each other.
#pragma once

#include <string>

#include "base/base.h"

namespace cli {

// The path without links, as far as it exists; what does not exist yet keeps its name.
[[nodiscard]] base::Result<std::string> real_place(const std::string& path);

// The real path of an open file or folder; "" for what has none (a pipe, a deleted file).
[[nodiscard]] std::string place_of(int fd);

// bad_input for a place, as real_place() or place_of() gives it, that holds cerco's state or lies
// in it. `what` names the flag and its value.
[[nodiscard]] base::Status check_apart_from_state(const std::string& place,
                                                  const std::string& state_dir,
                                                  const std::string& what);

// bad_input when the report lies within the folder of `--out`: the code inside could write a file
// of that name, which would stand in its place.
[[nodiscard]] base::Status check_report_apart(int report, int out);

}  // namespace cli
