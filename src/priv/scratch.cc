// Folders of the host under a layer that takes all changes.
#include "priv/scratch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "os/os.h"
#include "priv/lease.h"
#include "priv/mount.h"

namespace priv {

namespace {

// No file appears with this id where ids are mapped into a lease, so its holder is neither owner
// nor in the group of anything there.
constexpr unsigned kNobody = 65534;

// A process in a user namespace of its own, which ends when `held` is closed.
base::Result<os::Child> hold_namespace(base::Fd& held) {
  auto [reads, writes] = TRY(os::pipe());
  clone_args args = {};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return base::system_error("clone3");
  if (pid == 0) {
    ::close(writes.get());
    char end = 0;
    while (::read(reads.get(), &end, 1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }
  held = std::move(writes);
  return os::Child(static_cast<pid_t>(pid), TRY(os::open_pidfd(static_cast<pid_t>(pid))));
}

base::Status enter_folder(const Inside& inside, int folder) {
  if (!inside.has(CLONE_NEWNS)) return base::system_error("overlay", EPERM);
  if (::fchdir(folder) != 0) return base::system_error("fchdir");
  return {};
}

// While one lives, what is mounted is mounted by nobody: with the id go the capabilities over files
// (capabilities(7), fsuid), and CAP_SYS_ADMIN, which mounting takes, stays.
class AsNobody {
 public:
  AsNobody() {
    ::setfsgid(kNobody);
    ::setfsuid(kNobody);
  }
  ~AsNobody() {
    ::setfsuid(0);
    ::setfsgid(0);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  // Neither call says whether it worked, but each returns what was so before. A process that was
  // started with SECBIT_NO_SETUID_FIXUP keeps its capabilities through them (capabilities(7)).
  [[nodiscard]] static bool is() {
    const auto none = static_cast<unsigned>(-1);
    return ::setfsuid(none) == static_cast<int>(kNobody) &&
           ::setfsgid(none) == static_cast<int>(kNobody) && !reads_everything();
  }

 private:
  static bool reads_everything() {
    __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct held[2] = {};
    if (::syscall(SYS_capget, &head, held) != 0) return true;
    constexpr std::uint32_t kEverything = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    return (held[0].effective & kEverything) != 0;
  }
};

base::Result<base::Fd> mount_seen(Badge badge, const std::string& layers) {
  return new_mount(badge, "overlay",
                   {{"lowerdir", layers.c_str()},
                    {"index", "off"},
                    {"metacopy", "off"},
                    {"redirect_dir", "off"}},
                   kReadOnly | kNoSuid | kNoDev);
}

}  // namespace

base::Result<base::Fd> make_id_map(Badge badge, std::uint32_t first, std::uint32_t workload) {
  if (first < kFirstLease || workload < 2 || workload >= kLeaseSize - 2) {
    return base::system_error("id map", ERANGE);
  }
  base::Fd held;
  os::Child holder = TRY(hold_namespace(held));
  const std::string text =
      fmt::format("0 {} 1\n1 {} {}\n{} {} 1\n{} {} {}\n", first + workload, first + 1, workload - 1,
                  workload, first, workload + 1, first + workload + 1, kLeaseSize - 2 - workload);
  for (const char* map : {"uid_map", "gid_map"}) {
    const base::Fd file = TRY(os::open(fmt::format("/proc/{}/{}", holder.pid(), map), O_WRONLY, 0));
    if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return base::system_error(fmt::format("write {}", map));
    }
  }
  base::Fd made = TRY(user_namespace_of(badge, holder.pid()));
  held.reset();
  (void)TRY(holder.wait());
  return made;
}

base::Status map_ids(Badge, const Inside& inside, int mount, int id_map) {
  if (!inside.has(CLONE_NEWNS)) return base::system_error("mount_setattr", EPERM);
  mount_attr change = {};
  change.attr_set = MOUNT_ATTR_IDMAP;
  change.userns_fd = static_cast<std::uint64_t>(id_map);
  if (::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH, &change, sizeof change) != 0) {
    return base::system_error(
        "mount_setattr (its file system must take mapped ids: ext4, xfs, btrfs)");
  }
  return {};
}

base::Result<base::Fd> see_as(Badge badge, const Inside& inside, int at, const char* lower,
                              const char* empty, Reader reader) {
  TRY(enter_folder(inside, at));
  // Without an upper layer the kernel wants two lower ones.
  const std::string layers = fmt::format("{}:{}", lower, empty);
  if (reader == Reader::root) return mount_seen(badge, layers);
  const AsNobody nobody;
  if (!AsNobody::is()) return base::system_error("setfsuid to nobody", EPERM);
  return mount_seen(badge, layers);
}

base::Result<base::Fd> lay_over(Badge badge, const Inside& inside, int at, const char* lower,
                                const char* upper, const char* work) {
  TRY(enter_folder(inside, at));
  return new_mount(badge, "overlay",
                   {{"lowerdir", lower},
                    {"upperdir", upper},
                    {"workdir", work},
                    {"index", "off"},
                    {"metacopy", "off"},
                    {"redirect_dir", "on"},
                    {"volatile", nullptr}},
                   kNoSuid | kNoDev);
}

}  // namespace priv
