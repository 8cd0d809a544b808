// Mounts by descriptor.
#include "priv/mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

// sys/mount.h and linux/mount.h clash in this libc, so the two calls are declared here.
extern "C" int mount(const char*, const char*, const char*, unsigned long, const void*);
extern "C" int umount2(const char*, int);

namespace priv {

namespace {

constexpr unsigned long kPrivateRecursive = (1UL << 18) | (1UL << 14);  // MS_PRIVATE | MS_REC
constexpr int kDetach = 2;                                              // MNT_DETACH
constexpr int kNoFollow = 8;                                            // UMOUNT_NOFOLLOW

static_assert(kReadOnly == MOUNT_ATTR_RDONLY && kNoSuid == MOUNT_ATTR_NOSUID);
static_assert(kNoDev == MOUNT_ATTR_NODEV && kNoExec == MOUNT_ATTR_NOEXEC);

bool known(const char* kind) {
  for (const char* name : {"tmpfs", "proc", "mqueue", "devpts", "ext4", "overlay"}) {
    if (std::strcmp(kind, name) == 0) return true;
  }
  return false;
}

base::Status own_mounts_only(const Inside& inside, const char* what) {
  if (!inside.has(CLONE_NEWNS)) return base::system_error(what, EPERM);
  return {};
}

// What the kernel wrote into the file system context, which says more than the errno.
base::Error reason(int context, const char* kind, int number) {
  char text[256] = {};
  const ssize_t got = ::read(context, text, sizeof text - 1);
  base::Error error = base::system_error(fmt::format("mount {}", kind), number).error();
  if (got > 0) error.where += fmt::format(" ({})", base::printable({text, std::size_t(got)}));
  return error;
}

}  // namespace

base::Result<base::Fd> new_mount(Badge, const char* kind,
                                 std::initializer_list<MountOption> options,
                                 std::uint64_t attributes) {
  if (!known(kind)) return base::system_error("fsopen", EPERM);
  const base::Fd context(static_cast<int>(::syscall(SYS_fsopen, kind, FSOPEN_CLOEXEC)));
  if (!context.open()) return base::system_error(fmt::format("fsopen {}", kind));
  for (const auto& [key, value] : options) {
    const unsigned command = value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    if (::syscall(SYS_fsconfig, context.get(), command, key, value, 0) != 0) {
      return std::unexpected(reason(context.get(), kind, errno));
    }
  }
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return std::unexpected(reason(context.get(), kind, errno));
  }
  base::Fd made(
      static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributes)));
  if (!made.open()) return std::unexpected(reason(context.get(), kind, errno));
  return made;
}

base::Result<base::Fd> clone_tree(Badge, const Inside&, int at, const char* path, Depth depth) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
  if (path[0] == '\0') flags |= AT_EMPTY_PATH;
  if (depth == Depth::whole) flags |= AT_RECURSIVE;
  base::Fd tree(static_cast<int>(::syscall(SYS_open_tree, at, path, flags)));
  if (!tree.open()) return base::system_error(fmt::format("open_tree {}", path));
  return tree;
}

base::Status set_attributes(Badge, const Inside& inside, int mount, std::uint64_t attributes,
                            Depth depth) {
  TRY(own_mounts_only(inside, "mount_setattr"));
  mount_attr change = {};
  change.attr_set = attributes;
  const unsigned flags = AT_EMPTY_PATH | (depth == Depth::whole ? AT_RECURSIVE : 0U);
  if (::syscall(SYS_mount_setattr, mount, "", flags, &change, sizeof change) != 0) {
    return base::system_error("mount_setattr");
  }
  return {};
}

base::Status attach(Badge, const Inside& inside, int mount, int place) {
  TRY(own_mounts_only(inside, "move_mount"));
  if (::syscall(SYS_move_mount, mount, "", place, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return base::system_error("move_mount");
  }
  return {};
}

base::Status detach(Badge, const Inside& inside, int folder, const char* path) {
  TRY(own_mounts_only(inside, "umount"));
  if (::fchdir(folder) != 0) return base::system_error("fchdir");
  if (::umount2(path, kDetach | kNoFollow) != 0) return base::system_error("umount");
  return {};
}

base::Status make_private(Badge, const Inside& inside) {
  TRY(own_mounts_only(inside, "mount"));
  if (::mount(nullptr, "/", nullptr, kPrivateRecursive, nullptr) != 0) {
    return base::system_error("mount private");
  }
  return {};
}

base::Status pivot_root(Badge, const Inside& inside, int root) {
  TRY(own_mounts_only(inside, "pivot_root"));
  if (::fchdir(root) != 0) return base::system_error("fchdir");
  // With the same folder twice the old root ends up on top of the new one (pivot_root(2), notes).
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return base::system_error("pivot_root");
  if (::umount2(".", kDetach) != 0) return base::system_error("umount old root");
  if (::chdir("/") != 0) return base::system_error("chdir");
  return {};
}

base::Status change_root(Badge, const Inside& inside, int root) {
  TRY(own_mounts_only(inside, "chroot"));
  if (::fchdir(root) != 0 || ::chroot(".") != 0) return base::system_error("chroot");
  return {};
}

}  // namespace priv
