// Files at positions, under locks and made durable; names within a folder that is held by
// descriptor.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace os {

// flock(2), exclusive, until the owner's end. The lock belongs to the open file description, so two
// openings of one file exclude each other, also within one process.
class FileLock {
 public:
  // Waits ten seconds at most: whoever holds it longer is none of ours.
  [[nodiscard]] static base::Result<FileLock> take(int fd, std::string_view what);
  [[nodiscard]] static base::Result<FileLock> take_within(int fd, std::string_view what,
                                                          std::chrono::milliseconds most);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Up to `most` bytes from `offset`; fewer at the end of the file.
[[nodiscard]] base::Result<std::string> read_at(int fd, std::size_t most, std::uint64_t offset,
                                                std::string_view what);
[[nodiscard]] base::Status write_at(int fd, std::string_view bytes, std::uint64_t offset,
                                    std::string_view what);
[[nodiscard]] base::Status truncate(int fd, std::uint64_t size, std::string_view what);
[[nodiscard]] base::Status sync_data(int fd, std::string_view what);  // fdatasync(2)
// The kernel begins to write the file's data to the disk; nothing is waited for
// (sync_file_range(2)).
[[nodiscard]] base::Status start_writing(int fd, std::string_view what);

// Names are single components of the folder `dir`.
[[nodiscard]] base::Status rename_at(int dir, const std::string& from, const std::string& to);
[[nodiscard]] base::Status remove_at(int dir, const std::string& name);
// Makes the folder, or does nothing when it is there.
[[nodiscard]] base::Status make_folder_at(int dir, const std::string& name, unsigned mode);
// The folder, which is made with mode 0700 where there is none. bad_input that says what is wrong
// when it is a link, belongs to another user, or others may write to it: whoever chose what lies
// there would choose keys, leases and disks. The links of a path that ends in "/." are followed.
[[nodiscard]] base::Result<base::Fd> own_folder(const std::string& path);
// Names in the folder, without . and .., sorted by byte.
[[nodiscard]] base::Result<std::vector<std::string>> list_folder(const std::string& path);

}  // namespace os
