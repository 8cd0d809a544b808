// Loop devices: loop(4).
#include "priv/loop.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "os/os.h"

namespace priv {

namespace {

constexpr unsigned kLoopMajor = 7;
constexpr int kAttempts = 64;  // each start at the same time may take the number that we were told

// In a container /dev does not follow the kernel's devices: then a node of our own is made for a
// moment.
base::Result<base::Fd> open_device(int number) {
  const std::string path = fmt::format("/dev/loop{}", number);
  auto device = os::open(path, O_RDWR | O_NOFOLLOW, 0);
  if (device || device.error().number != ENOENT) return device;
  const std::string own = fmt::format("/dev/cerco-loop-{}-{}", ::getpid(), number);
  if (::mknod(own.c_str(), S_IFBLK | 0600, makedev(kLoopMajor, number)) != 0) {
    return base::system_error("mknod " + path);
  }
  device = os::open(own, O_RDWR | O_NOFOLLOW, 0);
  ::unlink(own.c_str());
  return device;
}

base::Status is_loop(int device) {
  const struct stat status = TRY(os::fstat(device, "loop device"));
  if (!S_ISBLK(status.st_mode) || major(status.st_rdev) != kLoopMajor) {
    return base::system_error("loop device", ENOTBLK);
  }
  return {};
}

}  // namespace

base::Result<base::Fd> attach_loop(int image) {
  const base::Fd control = TRY(os::open("/dev/loop-control", O_RDWR, 0));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return base::system_error("LOOP_CTL_GET_FREE");
    base::Fd device = TRY(open_device(number));
    TRY(is_loop(device.get()));
    loop_config config = {};
    config.fd = static_cast<__u32>(image);
    config.block_size = 4096;
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY && errno != EINTR) return base::system_error("LOOP_CONFIGURE");
  }
  return base::system_error("LOOP_CONFIGURE", EBUSY);
}

}  // namespace priv
