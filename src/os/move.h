// Moving a name from one open folder to another.
#pragma once

#include <string>

#include "base/base.h"

namespace os {

// renameat(2): replaces what stands at the destination unless it is a folder. Both names are single
// components; the folders must lie on one file system.
[[nodiscard]] base::Status move_between(int from_dir, const std::string& from, int to_dir,
                                        const std::string& to);

}  // namespace os
