// Who started this process, and from where.
#include "os/caller.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>

namespace os {

unsigned effective_uid() {
  return ::geteuid();
}

bool is_terminal(int fd) {
  return ::isatty(fd) == 1;
}

base::Status fill_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is the one that is missing.
    if (::open("/dev/null", O_RDWR) != fd) return base::system_error("open /dev/null");
  }
  return {};
}

base::Result<std::string> own_folder() {
  char buffer[PATH_MAX] = {};
  const ssize_t size = ::readlink("/proc/self/exe", buffer, sizeof buffer - 1);
  if (size <= 0) return base::system_error("read /proc/self/exe");
  const std::string path(buffer, static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/'));
}

base::Result<std::string> real_path(const std::string& path) {
  char buffer[PATH_MAX] = {};
  if (::realpath(path.c_str(), buffer) == nullptr) return base::system_error(path);
  return std::string(buffer);
}

bool is_executable_file(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return false;
  return S_ISREG(status.st_mode) && (status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

}  // namespace os
