// Files, pipes and anonymous memory.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/base.h"

namespace os {

// openat2(2). `resolve` is RESOLVE_BENEATH and so on; `dir` may be AT_FDCWD. O_CLOEXEC is added.
[[nodiscard]] base::Result<base::Fd> openat2(int dir, const std::string& path, int flags,
                                             unsigned mode, std::uint64_t resolve);
// open(2) of a path of our own or of the caller's: no resolve flags.
[[nodiscard]] base::Result<base::Fd> open(const std::string& path, int flags, unsigned mode);
// Everything up to `most` bytes; bad_input past that. Files and memfds are read from their start,
// and the position that their descriptor shares with other processes stays where it is.
[[nodiscard]] base::Result<std::string> read_all(int fd, std::size_t most, std::string_view what);
[[nodiscard]] base::Result<std::string> read_file(const std::string& path, std::size_t most);
// One read(2), retried on EINTR; "" at the end of the file.
[[nodiscard]] base::Result<std::string> read_some(int fd, std::size_t most, std::string_view what);
[[nodiscard]] base::Status write_all(int fd, std::string_view bytes, std::string_view what);
// A memfd with `bytes`, sealed against every change.
[[nodiscard]] base::Result<base::Fd> sealed_memfd(const char* name, std::string_view bytes);
[[nodiscard]] base::Result<std::pair<base::Fd, base::Fd>> pipe();  // read end, write end
[[nodiscard]] base::Result<struct stat> fstat(int fd, std::string_view what);
[[nodiscard]] base::Result<base::Fd> duplicate(int fd);
[[nodiscard]] base::Status make_folders(const std::string& path, unsigned mode);  // like mkdir -p

}  // namespace os
