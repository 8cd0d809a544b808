// Files at positions, under locks and made durable.
#include "os/storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace os {

base::Result<FileLock> FileLock::take(int fd, std::string_view what) {
  return take_within(fd, what, std::chrono::seconds(10));
}

base::Result<FileLock> FileLock::take_within(int fd, std::string_view what,
                                             std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  int pause = 1;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return base::system_error("lock " + std::string(what));
    if (std::chrono::steady_clock::now() >= end) {
      return base::fail(base::Kind::system, "lock " + std::string(what),
                        "another process keeps it locked", "end that process");
    }
    (void)::poll(nullptr, 0, pause);
    pause = std::min(pause * 2, 8);
  }
  return FileLock(fd);
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) ::flock(fd_, LOCK_UN);
}

base::Result<std::string> read_at(int fd, std::size_t most, std::uint64_t offset,
                                  std::string_view what) {
  constexpr std::size_t kStep = 16384;
  std::string bytes;
  ssize_t got = 1;
  while (got != 0 && bytes.size() < most) {
    const std::size_t filled = bytes.size();
    const std::size_t step = std::min(most - filled, std::max(kStep, filled));
    bytes.resize_and_overwrite(filled + step, [&](char* room, std::size_t) {
      got = ::pread(fd, room + filled, step, static_cast<off_t>(offset + filled));
      return filled + (got < 0 ? 0 : static_cast<std::size_t>(got));
    });
    if (got < 0 && errno != EINTR) return base::system_error("read " + std::string(what));
  }
  return bytes;
}

base::Status write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return base::system_error("write " + std::string(what));
    bytes.remove_prefix(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

base::Status truncate(int fd, std::uint64_t size, std::string_view what) {
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0)
    return base::system_error("truncate " + std::string(what));
  return {};
}

base::Status sync_data(int fd, std::string_view what) {
  if (::fdatasync(fd) != 0) return base::system_error("fdatasync " + std::string(what));
  return {};
}

base::Status start_writing(int fd, std::string_view what) {
  if (::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) != 0) {
    return base::system_error("sync_file_range " + std::string(what));
  }
  return {};
}

base::Status rename_at(int dir, const std::string& from, const std::string& to) {
  if (::renameat(dir, from.c_str(), dir, to.c_str()) != 0)
    return base::system_error("rename " + from);
  return {};
}

base::Status remove_at(int dir, const std::string& name) {
  if (::unlinkat(dir, name.c_str(), 0) != 0) return base::system_error("remove " + name);
  return {};
}

base::Status make_folder_at(int dir, const std::string& name, unsigned mode) {
  if (::mkdirat(dir, name.c_str(), mode) != 0 && errno != EEXIST)
    return base::system_error("mkdir " + name);
  return {};
}

base::Result<base::Fd> own_folder(const std::string& path) {
  const auto refuse = [&](std::string what) {
    return base::bad_input(path, std::move(what),
                           "a folder of the user who runs cerco, which nobody else may write to");
  };
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return base::system_error("mkdir " + path);
  }
  base::Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.open() && (errno == ENOTDIR || errno == ELOOP)) return refuse("a link or a file");
  if (!folder.open()) return base::system_error("open " + path);
  struct stat status = {};
  if (::fstat(folder.get(), &status) != 0) return base::system_error("fstat " + path);
  if (status.st_uid != ::geteuid()) {
    return refuse("belongs to uid " + std::to_string(status.st_uid));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refuse("others may write to it");
  return folder;
}

base::Result<std::vector<std::string>> list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return base::system_error("open " + path);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return base::system_error("read folder " + path);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace os
