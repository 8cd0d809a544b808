// Questions to the kernel.
#include "os/kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <linux/magic.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "os/files.h"

namespace os {

int landlock_abi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

bool has_seccomp_filters() {
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

bool has_nf_tables() {
  const base::Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!socket.open()) return false;
  // The kernel answers within the call or not at all; the bound is against the latter.
  const struct timeval patience = {.tv_sec = 1, .tv_usec = 0};
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  struct {
    struct nlmsghdr head;
    struct nfgenmsg family;
  } question = {};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = (NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_GETGEN;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.family.nfgen_family = AF_UNSPEC;
  question.family.version = NFNETLINK_V0;
  if (::send(socket.get(), &question, sizeof question, 0) != sizeof question) return false;
  alignas(struct nlmsghdr) std::array<char, 4096> answer{};
  ssize_t got = -1;
  do {
    got = ::recv(socket.get(), answer.data(), answer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < static_cast<ssize_t>(sizeof(struct nlmsghdr))) return false;
  struct nlmsghdr head = {};
  std::memcpy(&head, answer.data(), sizeof head);
  return head.nlmsg_type == ((NFNL_SUBSYS_NFTABLES << 8) | NFT_MSG_NEWGEN);
}

std::string kernel_release() {
  struct utsname name = {};
  return ::uname(&name) == 0 ? name.release : "";
}

bool is_root() {
  return ::geteuid() == 0;
}

MemorySize memory_size() {
  struct sysinfo info = {};
  if (::sysinfo(&info) != 0) return {};
  return {static_cast<std::uint64_t>(info.totalram) * info.mem_unit,
          static_cast<std::uint64_t>(info.totalswap) * info.mem_unit};
}

std::uint64_t hard_limit_of_files() {
  rlimit limit = {};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

unsigned usable_processors() {
  // 8192 processors is the most that Linux is built for.
  static constexpr std::size_t kMost = 8192;
  std::array<unsigned char, kMost / CHAR_BIT> mask{};
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, mask.size(), mask.data());
  unsigned count = 0;
  for (long i = 0; i < bytes; ++i) {
    count += static_cast<unsigned>(__builtin_popcount(mask[static_cast<std::size_t>(i)]));
  }
  return count;
}

// Cuts the path's last name off; false where there is none.
static bool to_parent(std::string& path) {
  const auto slash = path.rfind('/');
  if (path == "/" || slash == std::string::npos) return false;
  path.resize(std::max<std::size_t>(slash, 1));
  return true;
}

base::Result<DiskRoom> disk_room(std::string path) {
  const std::string asked = path;
  struct statfs status = {};
  while (::statfs(path.c_str(), &status) != 0) {
    if (errno != ENOENT || !to_parent(path)) return base::system_error("statfs " + asked);
  }
  const auto block = static_cast<std::uint64_t>(status.f_frsize);
  return DiskRoom{status.f_bavail * block, status.f_blocks * block};
}

bool may_access(const std::string& path, Access access) {
  const int mode = access == Access::write ? W_OK : access == Access::read ? R_OK : F_OK;
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

base::Result<std::string> disk_under(std::string path) {
  struct stat status = {};
  while (::stat(path.c_str(), &status) != 0) {
    if (!to_parent(path)) return base::system_error("stat " + path);
  }
  const std::string device =
      fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev));
  const bool part = ::access((device + "/partition").c_str(), F_OK) == 0;
  auto number = read_file(device + (part ? "/../dev" : "/dev"), 32);
  if (!number) {
    return base::fail(base::Kind::missing, path, "lies on no block device", "a folder on one");
  }
  while (number->ends_with('\n')) number->pop_back();
  return *number;
}

bool is_overlay(const std::string& path) {
  struct statfs status = {};
  return ::statfs(path.c_str(), &status) == 0 && status.f_type == OVERLAYFS_SUPER_MAGIC;
}

bool has_file_system(std::string_view kind) {
  constexpr std::size_t kMost = 16384;
  const auto known = read_file("/proc/filesystems", kMost);
  if (!known) return false;
  const auto lines = base::split(*known, '\n');
  return std::ranges::any_of(
      lines, [&](std::string_view line) { return line.substr(line.rfind('\t') + 1) == kind; });
}

PathKind path_kind(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return PathKind::none;
  if (S_ISDIR(status.st_mode)) return PathKind::folder;
  if (S_ISREG(status.st_mode)) return PathKind::file;
  return S_ISLNK(status.st_mode) ? PathKind::link : PathKind::other;
}

base::Result<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> text{};
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  if (length < 0) return base::system_error("readlink " + path);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace os
