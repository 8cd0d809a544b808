// Opening what lies in a state folder, which others may have put there.
#pragma once

#include <string>

#include "base/base.h"

namespace journal {

// A regular file for reading: links are not followed, and nothing is waited for (a pipe).
// is_strange() holds of the error for everything that is no regular file; for what can be opened it
// is bad_input that names `name`.
[[nodiscard]] base::Result<base::Fd> open_file(const std::string& path, const std::string& name);

[[nodiscard]] bool is_missing(const base::Error& error);  // no such file, or no folder to hold it
[[nodiscard]] bool is_strange(const base::Error& error);  // a link, a socket, a pipe, a folder

}  // namespace journal
