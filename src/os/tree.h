// Names within folders that are held by descriptor: what they are, links, listings. No link is
// followed.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/base.h"

namespace os {

// Names are single components of the folder `dir`.
[[nodiscard]] base::Result<struct stat> stat_at(int dir, const std::string& name);
[[nodiscard]] base::Status make_link_at(int dir, const std::string& name, const std::string& text);
[[nodiscard]] base::Result<std::string> read_link_at(int dir, const std::string& name);
// Names in an open folder, without . and .., sorted by byte.
[[nodiscard]] base::Result<std::vector<std::string>> list_open_folder(int dir);

}  // namespace os
