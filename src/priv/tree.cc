// Folders, links, files and devices of the tree that becomes the sandbox's root.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "priv/mount.h"

namespace priv {

namespace {

base::Result<base::Fd> open_in(int root, const char* path, std::uint64_t flags) {
  open_how how = {};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  if (fd < 0) return base::system_error(fmt::format("open {}", path));
  return base::Fd(static_cast<int>(fd));
}

// The folder that a path lies in, and its last name, within the caller's text.
struct Split {
  base::Fd folder;
  const char* name = "";
};

base::Result<Split> split(int root, const char* path) {
  const char* slash = std::strrchr(path, '/');
  Split parts;
  parts.name = slash == nullptr ? path : slash + 1;
  char above[4096] = "/";
  if (slash != nullptr && slash != path) {
    const auto length = static_cast<std::size_t>(slash - path);
    if (length >= sizeof above) return base::system_error(path, ENAMETOOLONG);
    std::memcpy(above, path, length);
    above[length] = '\0';
  }
  if (parts.name[0] == '\0' || std::strcmp(parts.name, "..") == 0) {
    return base::system_error(path, EINVAL);
  }
  parts.folder = TRY(open_in(root, above, O_PATH | O_DIRECTORY));
  return parts;
}

base::Status give(const Split& at, std::uint32_t owner, const char* path) {
  if (::fchownat(at.folder.get(), at.name, owner, owner, AT_SYMLINK_NOFOLLOW) != 0) {
    return base::system_error(fmt::format("chown {}", path));
  }
  return {};
}

}  // namespace

base::Result<base::Fd> find_in(int root, const char* path) {
  return open_in(root, path, O_PATH);
}

base::Result<base::Fd> make_place(Badge badge, const Inside& inside, int root, const char* path,
                                  Place kind, std::uint32_t owner) {
  auto found = open_in(root, path, O_PATH);
  if (found || found.error().number != ENOENT) return found;
  if (kind == Place::folder) {
    TRY(make_folder(badge, inside, root, path, 0755, owner));
  } else {
    TRY(write_file(badge, inside, root, path, {}, 0644, owner));
  }
  return open_in(root, path, O_PATH);
}

base::Status make_folder(Badge, const Inside&, int root, const char* path, std::uint32_t mode,
                         std::uint32_t owner) {
  const Split at = TRY(split(root, path));
  if (::mkdirat(at.folder.get(), at.name, mode) != 0) {
    return base::system_error(fmt::format("mkdir {}", path));
  }
  return give(at, owner, path);
}

base::Status make_link(Badge, const Inside&, int root, const char* path, const char* text,
                       std::uint32_t owner) {
  const Split at = TRY(split(root, path));
  if (::symlinkat(text, at.folder.get(), at.name) != 0) {
    return base::system_error(fmt::format("symlink {}", path));
  }
  return give(at, owner, path);
}

base::Status write_file(Badge, const Inside&, int root, const char* path, std::string_view content,
                        std::uint32_t mode, std::uint32_t owner) {
  const Split at = TRY(split(root, path));
  const base::Fd file(::openat(at.folder.get(), at.name,
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.open()) return base::system_error(fmt::format("create {}", path));
  while (!content.empty()) {
    const ssize_t put = ::write(file.get(), content.data(), content.size());
    if (put < 0) return base::system_error(fmt::format("write {}", path));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  if (::fchown(file.get(), owner, owner) != 0)
    return base::system_error(fmt::format("chown {}", path));
  return {};
}

base::Status make_device(Badge, const Inside&, int root, const char* path, unsigned major,
                         unsigned minor, std::uint32_t owner) {
  const bool kvm = major == 10 && minor == 232;
  if (major != 1 && major != 5 && !kvm)
    return base::system_error(fmt::format("mknod {}", path), EPERM);
  const Split at = TRY(split(root, path));
  if (::mknodat(at.folder.get(), at.name, S_IFCHR | 0666, makedev(major, minor)) != 0) {
    return base::system_error(fmt::format("mknod {}", path));
  }
  return give(at, owner, path);
}

}  // namespace priv
