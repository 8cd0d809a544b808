// What lies in the folder of a run that has ended.
#pragma once

#include <string>
#include <vector>

#include "base/base.h"

namespace cli {

// The segments of output that a detached run left, oldest first, as names below its folder.
[[nodiscard]] base::Result<std::vector<std::string>> output_files(const std::string& state_dir,
                                                                  const std::string& run);
// Removes the folder with all that is in it. An error when the run lives.
[[nodiscard]] base::Status remove_run_files(const std::string& state_dir, const std::string& run);

}  // namespace cli
