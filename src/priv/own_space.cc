// A user namespace of an ordinary user.
#include "priv/own_space.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace priv {

namespace {

base::Status write_own(const char* path, std::string_view text) {
  const base::Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (!fd.open()) return base::system_error(fmt::format("open {}", path));
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return base::system_error(fmt::format("write {}", path));
  }
  return {};
}

base::Status write_map(const char* path, std::uint32_t inside, std::uint32_t outside) {
  std::array<char, 64> text = {};
  const auto end = fmt::format_to_n(text.data(), text.size(), "{} {} 1\n", inside, outside);
  return write_own(path, {text.data(), end.size});
}

}  // namespace

Ids own_ids() {
  return {::geteuid(), ::getegid()};
}

base::Result<Cloned> clone_into_own_space(Badge, int cgroup) {
  if (::geteuid() == 0) return base::system_error("clone3 user namespace", EPERM);
  clone_args args = {};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return base::system_error("clone3 user namespace");
  Cloned cloned;
  cloned.pid = static_cast<pid_t>(pid);
  return cloned;
}

base::Status map_own_ids(Badge, Ids outside, std::uint32_t inside) {
  if (outside.uid == 0 || inside == 0) {
    return base::system_error("write uid_map", ERANGE);
  }
  // Else the files of proc belong to the host's root (proc_pid_setgroups(5)).
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return base::system_error("prctl PR_SET_DUMPABLE");
  TRY(write_own("/proc/self/setgroups", "deny"));
  TRY(write_map("/proc/self/uid_map", inside, outside.uid));
  return write_map("/proc/self/gid_map", inside, outside.gid);
}

}  // namespace priv
