// Names within folders that are held by descriptor.
#include "os/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

namespace os {

base::Result<struct stat> stat_at(int dir, const std::string& name) {
  struct stat status = {};
  if (::fstatat(dir, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return base::system_error("stat " + name);
  }
  return status;
}

base::Status make_link_at(int dir, const std::string& name, const std::string& text) {
  if (::symlinkat(text.c_str(), dir, name.c_str()) != 0) return base::system_error("link " + name);
  return {};
}

base::Result<std::string> read_link_at(int dir, const std::string& name) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(dir, name.c_str(), text.data(), text.size());
  if (size < 0) return base::system_error("read link " + name);
  text.resize(static_cast<std::size_t>(size));
  return text;
}

base::Result<std::vector<std::string>> list_open_folder(int dir) {
  // A descriptor of its own, since closedir(3) closes the one that it reads.
  const int own = ::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return base::system_error("open folder");
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(own), ::closedir);
  if (!folder) return base::system_error("open folder");
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return base::system_error("read folder");
  std::ranges::sort(names);
  return names;
}

}  // namespace os
