// A file that keeps holes for its zeros.
#include "os/sparse.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace os {

namespace {

constexpr std::size_t kBlock = 4096;

bool all_zero(std::string_view bytes) {
  return bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

base::Status put(int fd, std::string_view bytes, std::uint64_t at, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return base::system_error(std::string(what));
    bytes.remove_prefix(static_cast<std::size_t>(done));
    at += static_cast<std::uint64_t>(done);
  }
  return {};
}

}  // namespace

base::Status SparseWriter::write(std::string_view bytes, std::string_view what) {
  // The part of a block that each piece is; neighbours that hold something go in one call.
  const auto piece = [&](std::size_t from) {
    return bytes.substr(from, kBlock - (at_ + from) % kBlock);
  };
  std::size_t start = 0;
  while (start < bytes.size()) {
    std::size_t stop = start;
    const bool zero = all_zero(piece(start));
    while (stop < bytes.size() && all_zero(piece(stop)) == zero) stop += piece(stop).size();
    if (!zero) TRY(put(fd_, bytes.substr(start, stop - start), at_ + start, what));
    hole_ = zero;
    start = stop;
  }
  at_ += bytes.size();
  return {};
}

base::Status SparseWriter::end(std::string_view what) {
  if (!hole_) return {};
  static constexpr char kZero[1] = {};
  return put(fd_, {kZero, 1}, at_ - 1, what);
}

}  // namespace os
