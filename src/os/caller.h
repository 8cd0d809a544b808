// Who started this process, and from where.
#pragma once

#include <string>

#include "base/base.h"

namespace os {

[[nodiscard]] unsigned effective_uid();
[[nodiscard]] bool is_terminal(int fd);
// Opens /dev/null in the place of each of 0, 1, 2 that is closed, so that no other file gets its
// number.
[[nodiscard]] base::Status fill_standard_streams();
// The folder that this program's file lies in.
[[nodiscard]] base::Result<std::string> own_folder();
// An absolute path without symbolic links, `.` and `..`; relative ones start at the current folder.
[[nodiscard]] base::Result<std::string> real_path(const std::string& path);
// Whether the path names a regular file that may be executed by someone; follows links.
[[nodiscard]] bool is_executable_file(const std::string& path);

}  // namespace os
