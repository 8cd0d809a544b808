// Files, pipes and anonymous memory.
#include "os/files.h"

#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace os {

base::Result<base::Fd> openat2(int dir, const std::string& path, int flags, unsigned mode,
                               std::uint64_t resolve) {
  struct open_how how = {};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0;
  how.resolve = resolve;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  if (fd < 0) return base::system_error("open " + path);
  return base::Fd(static_cast<int>(fd));
}

base::Result<base::Fd> open(const std::string& path, int flags, unsigned mode) {
  return openat2(AT_FDCWD, path, flags, mode, 0);
}

base::Result<std::string> read_some(int fd, std::size_t most, std::string_view what) {
  std::string bytes;
  ssize_t got = -1;
  // Not filled with zeros first: pages that nothing is read into are never touched.
  bytes.resize_and_overwrite(most, [&](char* room, std::size_t size) {
    do {
      got = ::read(fd, room, size);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  });
  if (got < 0) return base::system_error("read " + std::string(what));
  return bytes;
}

namespace {

// read(2) at a place of our own choice: processes that inherited one description share its
// position. Pipes have none.
ssize_t read_more(int fd, std::string& bytes, std::size_t chunk) {
  const std::size_t have = bytes.size();
  ssize_t got = -1;
  bytes.resize_and_overwrite(have + chunk, [&](char* room, std::size_t size) {
    do {
      got = ::pread(fd, room + have, size - have, static_cast<off_t>(have));
      if (got < 0 && errno == ESPIPE) got = ::read(fd, room + have, size - have);
    } while (got < 0 && errno == EINTR);
    return have + (got < 0 ? 0 : static_cast<std::size_t>(got));
  });
  return got;
}

}  // namespace

base::Result<std::string> read_all(int fd, std::size_t most, std::string_view what) {
  const std::size_t chunk = most < 65536 ? most + 1 : 65536;
  std::string bytes;
  while (true) {
    const ssize_t got = read_more(fd, bytes, chunk);
    if (got < 0) return base::system_error("read " + std::string(what));
    if (got == 0) return bytes;
    if (bytes.size() > most) {
      return base::bad_input(std::string(what), "larger than " + std::to_string(most) + " bytes",
                             {});
    }
  }
}

base::Result<std::string> read_file(const std::string& path, std::size_t most) {
  const base::Fd fd = TRY(open(path, O_RDONLY, 0));
  return read_all(fd.get(), most, path);
}

base::Status write_all(int fd, std::string_view bytes, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return base::system_error("write " + std::string(what));
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

base::Result<base::Fd> sealed_memfd(const char* name, std::string_view bytes) {
  base::Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.open()) return base::system_error("memfd_create");
  TRY(write_all(fd.get(), bytes, name));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) !=
      0) {
    return base::system_error("seal memfd");
  }
  return fd;
}

base::Result<std::pair<base::Fd, base::Fd>> pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("pipe2");
  return std::pair(base::Fd(ends[0]), base::Fd(ends[1]));
}

base::Result<struct stat> fstat(int fd, std::string_view what) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return base::system_error("fstat " + std::string(what));
  return status;
}

base::Result<base::Fd> duplicate(int fd) {
  base::Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (!copy.open()) return base::system_error("dup");
  return copy;
}

base::Status make_folders(const std::string& path, unsigned mode) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    if (::mkdir(path.substr(0, at).c_str(), mode) != 0 && errno != EEXIST) {
      return base::system_error("mkdir " + path.substr(0, at));
    }
  }
  if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return base::system_error("mkdir " + path);
  return {};
}

}  // namespace os
