// The working disk of a sandbox.
#include "priv/disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/types.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/os.h"
#include "priv/loop.h"
#include "priv/mount.h"

namespace priv {

namespace {

// Of fs/ext4/ext4.h, which no header for programs has.
#define EXT4_IOC_SHUTDOWN _IOR('X', 125, __u32)
constexpr std::uint32_t EXT4_GOING_FLAGS_NOLOGFLUSH = 2;

constexpr unsigned kLoopMajor = 7;
// Bytes that may be left when the disk counts as full: programs write in pieces of up to a MiB, and
// what is left when one did not fit is less than that. Of a small disk it is a 64th part.
constexpr std::uint64_t kFullBelow = 2 << 20;
constexpr std::uint64_t kFullPart = 64;

}  // namespace

namespace {

base::Result<base::Fd> mount_ext4(Badge badge, const std::string& source) {
  return new_mount(badge, "ext4",
                   {{"source", source.c_str()},
                    {"nobarrier", nullptr},
                    {"noinit_itable", nullptr},
                    {"errors", "remount-ro"}},
                   kNoSuid | kNoDev);
}

}  // namespace

base::Status reserve_blocks(Badge, int file) {
  const struct stat status = TRY(os::fstat(file, "disk image"));
  int done = 0;
  do {
    done = ::fallocate(file, 0, 0, status.st_size);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return {};
  const bool room = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  if (!room && errno != EOPNOTSUPP) return base::system_error("fallocate");
  return base::fail(
      base::Kind::missing, "filesystem.reserve",
      room ? fmt::format("the disk of the state directory has no {} bytes", status.st_size)
           : "the file system of the state directory cannot reserve blocks",
      room ? "free some, or a smaller limits.disk"
           : "CERCO_STATE_DIR on ext4, xfs or btrfs, or reserve = false");
}

base::Result<base::Fd> make_disk(Badge badge, const std::string& state_dir, DiskSize size,
                                 Blocks blocks) {
  const base::Fd image = TRY(take_image(badge, state_dir, size));
  if (blocks == Blocks::reserved) TRY(reserve_blocks(badge, image.get()));
  const base::Fd device = TRY(attach_loop(image.get()));
  return mount_ext4(badge, fmt::format("/proc/self/fd/{}", device.get()));
}

base::Result<base::Fd> mount_guest_disk(Badge badge, std::string_view device) {
  if (!device.starts_with("/dev/vd")) return base::system_error("guest disk", EPERM);
  return mount_ext4(badge, std::string(device));
}

base::Status make_disk_folder(Badge, int disk, const std::string& name, std::uint32_t mode,
                              std::uint32_t owner) {
  if (::mkdirat(disk, name.c_str(), 0700) != 0 || ::fchmodat(disk, name.c_str(), mode, 0) != 0 ||
      ::fchownat(disk, name.c_str(), owner, owner, AT_SYMLINK_NOFOLLOW) != 0) {
    return base::system_error("mkdir " + name);
  }
  return {};
}

base::Status discard_disk(Badge, int disk) {
  // The descriptor of a mount is an O_PATH one, which takes no ioctl.
  const base::Fd top = TRY(os::openat2(disk, ".", O_RDONLY | O_DIRECTORY, 0, 0));
  const struct stat status = TRY(os::fstat(top.get(), "working disk"));
  if (major(status.st_dev) != kLoopMajor) return base::system_error("discard disk", EPERM);
  const std::uint32_t flags = EXT4_GOING_FLAGS_NOLOGFLUSH;
  if (::ioctl(top.get(), EXT4_IOC_SHUTDOWN, &flags) != 0) return base::system_error("discard disk");
  return {};
}

base::Result<DiskUse> disk_use(int disk) {
  struct statfs status = {};
  if (::fstatfs(disk, &status) != 0) return base::system_error("statfs of the working disk");
  const auto block = static_cast<std::uint64_t>(status.f_bsize);
  DiskUse use;
  use.used = (status.f_blocks - status.f_bfree) * block;
  const std::uint64_t least = std::min(kFullBelow, status.f_blocks * block / kFullPart);
  use.full = status.f_bavail * block < least || status.f_ffree == 0;
  return use;
}

}  // namespace priv
