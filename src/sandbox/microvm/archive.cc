// Writing of cpio.
#include "sandbox/microvm/archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <iterator>

namespace sandbox {

namespace {

constexpr std::size_t kAlign = 4;
constexpr std::string_view kEnd = "TRAILER!!!";

}  // namespace

void Archive::pad() {
  while (bytes_.size() % kAlign != 0) bytes_.push_back('\0');
}

void Archive::entry(std::string_view path, std::uint32_t mode, std::string_view content,
                    std::uint32_t major, std::uint32_t minor) {
  // number, mode, uid, gid, links, time, size, device of the file twice, device it is twice, length
  // of the name with its end, sum
  fmt::format_to(std::back_inserter(bytes_), "070701");
  for (const std::uint64_t field :
       {std::uint64_t{++number_}, std::uint64_t{mode}, std::uint64_t{0}, std::uint64_t{0},
        std::uint64_t{1}, std::uint64_t{0}, std::uint64_t{content.size()}, std::uint64_t{0},
        std::uint64_t{0}, std::uint64_t{major}, std::uint64_t{minor},
        std::uint64_t{path.size() + 1}, std::uint64_t{0}}) {
    fmt::format_to(std::back_inserter(bytes_), "{:08x}", field);
  }
  bytes_ += path;
  bytes_.push_back('\0');
  pad();
  bytes_ += content;
  pad();
}

void Archive::folder(std::string_view path) {
  entry(path, S_IFDIR | 0755, {}, 0, 0);
}

void Archive::file(std::string_view path, std::string_view content, std::uint32_t mode) {
  entry(path, S_IFREG | mode, content, 0, 0);
}

void Archive::device(std::string_view path, std::uint32_t major, std::uint32_t minor) {
  entry(path, S_IFCHR | 0600, {}, major, minor);
}

std::string Archive::finish() {
  entry(kEnd, 0, {}, 0, 0);
  return std::move(bytes_);
}

}  // namespace sandbox
