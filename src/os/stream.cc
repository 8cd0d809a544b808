// Bytes that flow.
#include "os/stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace os {

base::Result<std::size_t> write_some(int fd, std::string_view bytes, std::string_view what) {
  ssize_t put = -1;
  do {
    put = ::write(fd, bytes.data(), bytes.size());
  } while (put < 0 && errno == EINTR);
  if (put < 0) return base::system_error("write " + std::string(what));
  return static_cast<std::size_t>(put);
}

std::size_t write_quantum(int fd) {
  static constexpr std::size_t kPage = 4096;  // what pipe(7) promises to take when it is writable
  struct stat status = {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return kPage;
  return std::numeric_limits<std::size_t>::max();
}

}  // namespace os
