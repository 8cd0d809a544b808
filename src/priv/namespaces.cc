// Namespaces: clone3(2), user maps, time offsets, host name.
#include "priv/namespaces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <linux/sched.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>

#include "os/os.h"
#include "priv/lease.h"

namespace priv {

namespace {

constexpr std::uint64_t kSpaces =
    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

// One write(2) of the whole text: files of proc take a value in a single call only.
base::Status write_value(int dir, const char* path, std::string_view text) {
  const base::Fd fd(::openat(dir, path, O_WRONLY | O_CLOEXEC));
  if (!fd.open()) return base::system_error(fmt::format("open {}", path));
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return base::system_error(fmt::format("write {}", path));
  }
  return {};
}

}  // namespace

base::Result<Cloned> clone_process(Badge, std::uint64_t spaces, std::uint64_t others, int cgroup) {
  if ((spaces & ~kSpaces) != 0 || (others & ~std::uint64_t{CLONE_PARENT}) != 0) {
    return base::system_error("clone3", EINVAL);
  }
  clone_args args = {};
  args.flags = spaces | others;
  // With CLONE_PARENT the child is reaped like its sibling, whose signal is SIGCHLD.
  args.exit_signal = (others & CLONE_PARENT) != 0 ? 0 : SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return base::system_error("clone3");
  Cloned cloned;
  cloned.pid = static_cast<pid_t>(pid);
  if (pid == 0) cloned.inside = Inside(spaces);
  return cloned;
}

base::Status leave_user_namespace(Badge badge, std::uint32_t owner) {
  if (owner < kFirstLease) return base::system_error("unshare user namespace", ERANGE);
  // Rights stay until the namespace is made: some hosts refuse it to who has none.
  if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0) {
    return base::system_error("prctl SECUREBITS");
  }
  if (::setresuid(static_cast<uid_t>(-1), owner, static_cast<uid_t>(-1)) != 0) {
    return base::system_error("setresuid");
  }
  if (::unshare(CLONE_NEWUSER) != 0) return base::system_error("unshare user namespace");
  return die_with_parent(badge);  // forgotten when the uid changed
}

base::Status write_user_maps(Badge, pid_t pid, std::uint32_t first, std::uint64_t count) {
  if (first < kFirstLease || count == 0 || count > kLeaseSize) {
    return base::system_error("write uid_map", ERANGE);
  }
  const std::string text = fmt::format("0 {} {}\n", first, count);
  TRY(write_value(AT_FDCWD, fmt::format("/proc/{}/uid_map", pid).c_str(), text));
  return write_value(AT_FDCWD, fmt::format("/proc/{}/gid_map", pid).c_str(), text);
}

base::Result<base::Fd> user_namespace_of(Badge, pid_t pid) {
  return os::open(fmt::format("/proc/{}/ns/user", pid), O_RDONLY, 0);
}

base::Status enter_user_namespace(Badge, const Inside&, int user_namespace) {
  if (::setns(user_namespace, CLONE_NEWUSER) != 0) return base::system_error("setns");
  if (::setgroups(0, nullptr) != 0) return base::system_error("setgroups");
  if (::setresgid(0, 0, 0) != 0) return base::system_error("setresgid");
  if (::setresuid(0, 0, 0) != 0) return base::system_error("setresuid");
  return {};
}

base::Status forbid_user_namespaces(Badge, const Inside&, int folder) {
  return write_value(folder, "max_user_namespaces", "0");
}

base::Status restart_clocks_for_children(Badge) {
  timespec monotonic = {};
  timespec boot = {};
  ::clock_gettime(CLOCK_MONOTONIC, &monotonic);
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  if (::unshare(CLONE_NEWTIME) != 0) return base::system_error("unshare time namespace");
  std::array<char, 96> text = {};
  const auto end = fmt::format_to_n(text.data(), text.size(), "monotonic -{} 0\nboottime -{} 0\n",
                                    monotonic.tv_sec, boot.tv_sec);
  return write_value(AT_FDCWD, "/proc/self/timens_offsets", {text.data(), end.size});
}

base::Status set_hostname(Badge, const Inside& inside, const std::string& name) {
  if (!inside.has(CLONE_NEWUTS)) return base::system_error("sethostname", EPERM);
  if (::sethostname(name.data(), name.size()) != 0) return base::system_error("sethostname");
  if (::setdomainname("", 0) != 0) return base::system_error("setdomainname");
  return {};
}

base::Status die_with_parent(Badge) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return base::system_error("prctl PDEATHSIG");
  return {};
}

}  // namespace priv
