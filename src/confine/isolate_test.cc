// The filter of the V8 engine, over every number and the arguments at which it changes its mind,
// against a list that is written a second time here; then in a child that tries to get past it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <string>

#include "confine/confine.h"
#include "confine/rules.h"

namespace confine {
namespace {

using Args = std::array<std::uint64_t, 6>;
constexpr std::uint32_t kAllowed = SECCOMP_RET_ALLOW;

std::uint32_t gives(int number) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(number);
}

const std::set<std::string_view> kAlways = {"accept4",
                                            "access",
                                            "brk",
                                            "clock_getres",
                                            "clock_gettime",
                                            "clock_nanosleep",
                                            "close",
                                            "connect",
                                            "epoll_create1",
                                            "epoll_ctl",
                                            "epoll_pwait",
                                            "epoll_wait",
                                            "eventfd2",
                                            "exit",
                                            "exit_group",
                                            "faccessat",
                                            "faccessat2",
                                            "fstat",
                                            "fstatfs",
                                            "futex",
                                            "getcpu",
                                            "getcwd",
                                            "getdents64",
                                            "getegid",
                                            "geteuid",
                                            "getgid",
                                            "getpeername",
                                            "getpid",
                                            "getppid",
                                            "getrandom",
                                            "getrlimit",
                                            "getrusage",
                                            "getsockname",
                                            "getsockopt",
                                            "gettid",
                                            "gettimeofday",
                                            "getuid",
                                            "lseek",
                                            "lstat",
                                            "madvise",
                                            "mincore",
                                            "mmap",
                                            "mprotect",
                                            "mremap",
                                            "munmap",
                                            "nanosleep",
                                            "newfstatat",
                                            "pipe2",
                                            "poll",
                                            "ppoll",
                                            "pread64",
                                            "read",
                                            "readlink",
                                            "readlinkat",
                                            "readv",
                                            "recvfrom",
                                            "recvmsg",
                                            "restart_syscall",
                                            "rseq",
                                            "rt_sigaction",
                                            "rt_sigprocmask",
                                            "rt_sigreturn",
                                            "sched_getaffinity",
                                            "sched_getparam",
                                            "sched_getscheduler",
                                            "sched_yield",
                                            "select",
                                            "sendmmsg",
                                            "sendmsg",
                                            "sendto",
                                            "set_robust_list",
                                            "set_tid_address",
                                            "setsockopt",
                                            "shutdown",
                                            "sigaltstack",
                                            "stat",
                                            "statx",
                                            "sysinfo",
                                            "time",
                                            "times",
                                            "uname",
                                            "wait4",
                                            "write",
                                            "writev"};
const std::set<std::string_view> kByArgument = {"arch_prctl", "clone",  "execveat",  "fcntl",
                                                "ioctl",      "open",   "openat",    "prctl",
                                                "prlimit64",  "socket", "socketpair"};

// What the calls that are judged by their arguments should do, in plain C.
std::uint32_t by_argument(std::string_view name, const Args& a) {
  const auto low = [&](std::size_t i) { return static_cast<std::uint32_t>(a[i]); };
  const auto reads = [&](std::size_t i) {
    return (low(i) & (1 | 2 | 0100 | 01000 | 02000 | 020000000)) == 0;
  };
  if (name == "clone") {  // CLONE_VM, CLONE_SIGHAND, CLONE_THREAD, and no namespace
    return (low(0) & 0x10900) == 0x10900 && (low(0) & 0x7E020000) == 0 ? kAllowed : gives(EPERM);
  }
  if (name == "execveat") return low(0) == 1000 && low(4) == 0x1000 ? kAllowed : gives(EPERM);
  if (name == "open") return reads(1) ? kAllowed : gives(EPERM);
  if (name == "openat") return reads(2) ? kAllowed : gives(EPERM);
  if (name == "socketpair") return low(0) == 1 ? kAllowed : gives(EAFNOSUPPORT);
  if (name == "socket") {
    const bool inet = low(0) == 2 || low(0) == 10;
    const bool kind = (low(1) & 15) == 1 || (low(1) & 15) == 2;
    const bool protocol = low(2) == 0 || low(2) == 6 || low(2) == 17;
    return inet && kind && protocol ? kAllowed : gives(EAFNOSUPPORT);
  }
  if (name == "fcntl") {  // F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC
    return low(1) <= 4 || low(1) == 1030 ? kAllowed : gives(EPERM);
  }
  if (name == "ioctl") return low(1) == 0x5421 || low(1) == 0x541B ? kAllowed : gives(ENOTTY);
  if (name == "prlimit64") return a[2] == 0 ? kAllowed : gives(EPERM);
  if (name == "prctl") {
    return low(0) == 15 || low(0) == 16 || low(0) == 0x53564d41 ? kAllowed : gives(EPERM);
  }
  if (name == "arch_prctl") return low(0) == 0x1002 || low(0) == 0x3001 ? kAllowed : gives(EPERM);
  ADD_FAILURE() << name;
  return 0;
}

std::vector<std::uint64_t> edges() {
  std::vector<std::uint64_t> out;
  for (std::uint64_t value = 0; value <= 20; ++value) out.push_back(value);
  for (std::uint64_t bit = 0; bit < 64; ++bit) out.push_back(1ULL << bit);
  for (const std::uint64_t value : {0x10900ULL, 0x3d0f00ULL, 0x1200011ULL, 0x7E020000ULL, 1000ULL,
                                    0x1000ULL, 1030ULL, 0x5421ULL, 0x541BULL, 0x53564d41ULL,
                                    0x1002ULL, 0x3001ULL, 0x80001ULL, 0x80802ULL, 0x80000ULL}) {
    for (const std::uint64_t near : {value - 1, value, value + 1, value | std::uint64_t{1} << 32}) {
      out.push_back(near);
    }
  }
  return out;
}

void compare(Arch arch, std::uint32_t audit) {
  const Filter program = filter(Profile::isolate, arch);
  ASSERT_LE(program.size(), 4096U);
  std::map<int, const Call*> by_number;
  for (const Call& call : calls()) {
    if (call.number(arch) >= 0) by_number[call.number(arch)] = &call;
  }
  const std::vector<std::uint64_t> values = edges();
  for (std::uint32_t nr = 0; nr <= 1100; ++nr) {
    const auto found = by_number.find(static_cast<int>(nr));
    const std::string_view name = found == by_number.end() ? "" : found->second->name;
    if (kByArgument.contains(name)) {
      for (const std::uint64_t first : values) {
        for (const std::uint64_t second :
             {first, std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x1000}}) {
          for (const Args& args : {Args{first, second, second, 0, second, 0},
                                   Args{second, first, 0, 0, 0, 0}, Args{2, 1, first, 0, 0, 0}}) {
            ASSERT_EQ(evaluate(program, nr, audit, args), by_argument(name, args))
                << name << " " << first;
          }
        }
      }
      continue;
    }
    std::uint32_t expected = gives(EPERM);
    if (nr > 470) expected = gives(ENOSYS);
    if (name == "clone3" || name == "openat2" || name == "pkey_alloc") expected = gives(ENOSYS);
    if (found != by_number.end() && found->second->standard == Standard::absent)
      expected = gives(ENOSYS);
    if (kAlways.contains(name)) expected = kAllowed;
    for (const std::uint64_t value : {0ULL, 1ULL, ~0ULL}) {
      ASSERT_EQ(evaluate(program, nr, audit, {value, value, value, value, value, value}), expected)
          << nr << " " << name;
    }
  }
  EXPECT_EQ(evaluate(program, 0, AUDIT_ARCH_I386, {}), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(evaluate(program, 0x40000000, audit, {}), gives(ENOSYS));
}

TEST(IsolateFilter, DecidesEveryCallOnBothArchitectures) {
  compare(Arch::x86_64, AUDIT_ARCH_X86_64);
  compare(Arch::aarch64, AUDIT_ARCH_AARCH64);
}

TEST(IsolateFilter, StartsNothingWritesNothingSignalsNobody) {
  for (const std::string_view name : {"execve",
                                      "fork",
                                      "vfork",
                                      "kill",
                                      "tkill",
                                      "tgkill",
                                      "pidfd_open",
                                      "pidfd_send_signal",
                                      "ptrace",
                                      "memfd_create",
                                      "dup2",
                                      "dup3",
                                      "bind",
                                      "listen",
                                      "creat",
                                      "mkdirat",
                                      "unlinkat",
                                      "renameat2",
                                      "symlinkat",
                                      "linkat",
                                      "fchmodat",
                                      "truncate",
                                      "ftruncate",
                                      "setrlimit",
                                      "process_vm_writev",
                                      "seccomp",
                                      "unshare",
                                      "setsid",
                                      "inotify_init1",
                                      "shmget",
                                      "mq_open"}) {
    const auto number = number_of(name, Arch::x86_64);
    ASSERT_TRUE(number) << name;
    EXPECT_NE(evaluate(filter(Profile::isolate, Arch::x86_64), static_cast<std::uint32_t>(*number),
                       AUDIT_ARCH_X86_64, {}),
              kAllowed)
        << name;
  }
}

}  // namespace
}  // namespace confine
