// The filter for the V8 engine of the isolate tier and for what started it: what workerd calls from
// its exec to its end, and nothing that starts a program or a process, names a file to write, or
// signals anybody. What a V8 fault gives is native code in a process that can do this and no more.
//
// Memory may be made executable: the engine compiles while it runs, and its heap is where it does
// so.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>

#include "confine/rules.h"

namespace confine {
namespace {

constexpr Verdict kRefuse = error(EPERM);
constexpr Verdict kAbsent = error(ENOSYS);

constexpr std::string_view kIsolate[] = {
    // Memory, time, threads, ends.
    "brk", "clock_getres", "clock_gettime", "clock_nanosleep", "exit", "exit_group", "futex",
    "getcpu", "getrandom", "gettid", "gettimeofday", "madvise", "mincore", "mmap", "mprotect",
    "mremap", "munmap", "nanosleep", "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "sched_yield",
    "set_robust_list", "set_tid_address", "sigaltstack", "time", "times",
    // What it is and where.
    "getcwd", "getegid", "geteuid", "getgid", "getpid", "getppid", "getrlimit", "getrusage",
    "getuid", "sysinfo", "uname", "wait4",
    // Descriptors that it has, and files to read.
    "access", "close", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_wait", "eventfd2",
    "faccessat", "faccessat2", "fstat", "fstatfs", "getdents64", "lseek", "lstat", "newfstatat",
    "poll", "ppoll", "pread64", "read", "readlink", "readlinkat", "readv", "select", "stat",
    "statx", "write", "writev", "pipe2",
    // Connections outward, and the one socket that it was given to accept from.
    "accept4", "connect", "getpeername", "getsockname", "getsockopt", "recvfrom", "recvmsg",
    "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown"};

Part low(unsigned arg, std::vector<std::uint32_t> any_of) {
  return {arg, Half::low, ~0U, std::move(any_of)};
}
Decision only(std::vector<Case> cases, Verdict otherwise) {
  return {std::move(cases), otherwise};
}

// A thread of the same process; clone3 keeps its flags behind a pointer and so looks absent.
Decision threads() {
  constexpr std::uint32_t kThread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
  return only({{{{0, Half::low, kThread | kNamespacesOfClone, {kThread}}}, kAllow}}, kRefuse);
}

// The exec that begins the engine: its descriptor is closed by it, and lies past the limit of those
// that can be opened afterwards.
Decision first_exec() {
  return only({{{low(0, {kIsolateProgram}), low(4, {AT_EMPTY_PATH})}, kAllow}}, kRefuse);
}

Decision read_only(unsigned flags) {
  constexpr std::uint32_t kTmpFile = 020000000;  // __O_TMPFILE
  constexpr std::uint32_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | kTmpFile;
  return only({{{{flags, Half::low, kWrites, {0}}}, kAllow}}, kRefuse);
}

Decision sockets() {
  constexpr std::uint32_t kType = 0xf;  // above it SOCK_CLOEXEC and SOCK_NONBLOCK
  constexpr std::uint32_t kTcp = 6;
  constexpr std::uint32_t kUdp = 17;
  return only({{{low(0, {AF_INET, AF_INET6}),
                 {1, Half::low, kType, {SOCK_STREAM, SOCK_DGRAM}},
                 low(2, {0, kTcp, kUdp})},
                kAllow}},
              error(EAFNOSUPPORT));
}

Decision fcntl_rules() {
  return only({{{low(1, {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL})}, kAllow}},
              kRefuse);
}

// Reading a limit, not setting one.
Decision prlimit_rules() {
  return only({{{low(2, {0}), {2, Half::high, ~0U, {0}}}, kAllow}}, kRefuse);
}

}  // namespace

Table isolate_table(Arch arch) {
  Table table{kRefuse, kAbsent};
  const auto put = [&](std::string_view name, Decision decision) {
    if (const auto number = number_of(name, arch)) table.calls[*number] = std::move(decision);
  };
  for (const Call& call : calls()) {
    put(call.name, {{}, call.standard == Standard::absent ? kAbsent : kRefuse});
  }
  for (const std::string_view name : kIsolate) put(name, {{}, kAllow});
  put("clone", threads());
  put("clone3", {{}, kAbsent});
  put("pkey_alloc", {{}, kAbsent});
  put("execveat", first_exec());
  put("open", read_only(1));
  put("openat", read_only(2));
  put("openat2", {{}, kAbsent});
  put("socket", sockets());
  put("socketpair", only({{{low(0, {AF_UNIX})}, kAllow}}, error(EAFNOSUPPORT)));
  put("ioctl", only({{{low(1, {FIONBIO, FIONREAD})}, kAllow}}, error(ENOTTY)));
  put("fcntl", fcntl_rules());
  put("prlimit64", prlimit_rules());
  put("prctl", only({{{low(0, {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA})}, kAllow}}, kRefuse));
  // ARCH_SET_FS: where a thread keeps its own variables.
  put("arch_prctl", only({{{low(0, {0x1002, 0x3001})}, kAllow}}, kRefuse));
  return table;
}

}  // namespace confine
