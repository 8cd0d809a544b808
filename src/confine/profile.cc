// The filters for workloads: an allow-list of what toolchains call, with the few calls that need a
// look at their arguments. Nothing behind a pointer is judged: the caller could change it after the
// look.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

#include "confine/rules.h"

namespace confine {
namespace {

constexpr Verdict kRefuse = error(EPERM);
constexpr Verdict kAbsent = error(ENOSYS);
constexpr std::uint32_t kIoprioWhoUser = 3;  // linux/ioprio.h

Part low(unsigned arg, std::vector<std::uint32_t> any_of) {
  return {arg, Half::low, ~0U, std::move(any_of)};
}
Part masked(unsigned arg, std::uint32_t mask, std::vector<std::uint32_t> any_of) {
  return {arg, Half::low, mask, std::move(any_of)};
}
// The whole 64 bits of a pointer.
std::vector<Part> null(unsigned arg) {
  return {low(arg, {0}), {arg, Half::high, ~0U, {0}}};
}

// No namespace is made: user namespaces open a kernel surface that a sandbox has no use for.
Decision namespaces(std::uint32_t bits) {
  return {{{{masked(0, bits, {0})}, kAllow}}, kRefuse};
}

// Input pushed into a terminal (TIOCSTI, TIOCLINUX), line disciplines, the console, and attributes
// that make files hard to remove. The kernel looks at 32 bits of the request.
Decision ioctl_rules() {
  constexpr std::uint32_t kSetFlags32 = _IOW('f', 2, int);  // FS_IOC32_SETFLAGS
  constexpr std::uint32_t kSetXattr = _IOW('X', 32, struct fsxattr);
  return {{{{low(1, {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS,
                     static_cast<std::uint32_t>(FS_IOC_SETFLAGS), kSetFlags32, kSetXattr})},
            kRefuse}},
          kAllow};
}

// What a process may say of itself. Absent here: PR_SET_MM, PR_SET_SECUREBITS, PR_CAPBSET_DROP,
// PR_SET_IO_FLUSHER, PR_SCHED_CORE, PR_SET_SYSCALL_USER_DISPATCH, PR_SET_TSC, PR_MCE_KILL and
// unknown ones.
Decision prctl_rules() {
  constexpr std::uint32_t kSetMdwe = 65;
  constexpr std::uint32_t kGetMdwe = 66;
  constexpr std::uint32_t kGetAuxv = 0x41555856;
  const std::vector<std::uint32_t> allowed = {PR_SET_PDEATHSIG,
                                              PR_GET_PDEATHSIG,
                                              PR_GET_DUMPABLE,
                                              PR_SET_DUMPABLE,
                                              PR_GET_KEEPCAPS,
                                              PR_SET_KEEPCAPS,
                                              PR_SET_NAME,
                                              PR_GET_NAME,
                                              PR_GET_SECCOMP,
                                              PR_SET_SECCOMP,
                                              PR_CAPBSET_READ,
                                              PR_GET_SECUREBITS,
                                              PR_SET_TIMERSLACK,
                                              PR_GET_TIMERSLACK,
                                              PR_SET_CHILD_SUBREAPER,
                                              PR_GET_CHILD_SUBREAPER,
                                              PR_SET_NO_NEW_PRIVS,
                                              PR_GET_NO_NEW_PRIVS,
                                              PR_GET_TID_ADDRESS,
                                              PR_SET_THP_DISABLE,
                                              PR_GET_THP_DISABLE,
                                              PR_GET_SPECULATION_CTRL,
                                              PR_SVE_SET_VL,
                                              PR_SVE_GET_VL,
                                              PR_PAC_RESET_KEYS,
                                              PR_SET_TAGGED_ADDR_CTRL,
                                              PR_GET_TAGGED_ADDR_CTRL,
                                              PR_SET_PTRACER,
                                              PR_SET_VMA,
                                              kSetMdwe,
                                              kGetMdwe,
                                              kGetAuxv};
  return {{{{low(0, allowed)}, kAllow},
           {{low(0, {PR_CAP_AMBIENT}), low(1, {PR_CAP_AMBIENT_IS_SET})}, kAllow},
           {{low(0, {PR_SET_SPECULATION_CTRL}),
             low(2, {PR_SPEC_DISABLE, PR_SPEC_FORCE_DISABLE, PR_SPEC_DISABLE_NOEXEC})},
            kAllow}},
          kRefuse};
}

// Execution domains that change how memory is laid out help exploits; debuggers want one of them.
Decision personality_rules(Profile profile) {
  constexpr std::uint32_t kLinux32 = PER_LINUX32;
  constexpr std::uint32_t kName26 = UNAME26;
  std::vector<std::uint32_t> allowed = {PER_LINUX, kLinux32, kName26, kLinux32 | kName26, ~0U};
  if (profile == Profile::debug) allowed.push_back(ADDR_NO_RANDOMIZE);
  return {{{{low(0, std::move(allowed))}, kAllow}}, kRefuse};
}

// A process may confine itself further, but never become the judge of another's calls.
Decision seccomp_rules() {
  return {{{{low(0, {SECCOMP_SET_MODE_FILTER}), masked(1, SECCOMP_FILTER_FLAG_NEW_LISTENER, {0})},
            kAllow},
           {{low(0, {SECCOMP_SET_MODE_STRICT, SECCOMP_GET_ACTION_AVAIL, SECCOMP_GET_NOTIF_SIZES})},
            kAllow}},
          kRefuse};
}

// Special files but sockets, fifos and plain ones are devices.
Decision mknod_rules(unsigned mode) {
  return {{{{masked(mode, S_IFMT, {0, S_IFREG, S_IFIFO, S_IFSOCK})}, kAllow}}, kRefuse};
}

// RLIMIT_CORE stays 1, see rlimits(). A limit of 0, which programs set to protect their secrets,
// would start the host's core helper; they get success, because some end when this fails, and no
// core is written either way. Together with a wish for the old value success would leave that
// unfilled.
Decision prlimit_rules() {
  constexpr std::uint32_t kCore = 4;  // RLIMIT_CORE, an enum in C
  std::vector<Part> reading = {low(1, {kCore})};
  std::vector<Part> setting = reading;
  for (const Part& part : null(2)) reading.push_back(part);
  for (const Part& part : null(3)) setting.push_back(part);
  return {{{reading, kAllow}, {setting, kPretend}, {{low(1, {kCore})}, kRefuse}}, kAllow};
}
Decision setrlimit_rules() {
  return {{{{low(0, {4})}, kPretend}}, kAllow};
}

// A lease makes whoever opens the file wait for its holder: of a file that is shared to be read, a
// program of the host. The kernel gives one to the file's owner, who the workload is without root.
Decision lease_rules() {
  return {{{{low(1, {F_SETLEASE})}, kRefuse}}, kAllow};
}

// Process 1 is cerco's own init. Where it has the workload's uid (a user namespace whose map has
// one id) the kernel would let these calls change it; elsewhere it refuses them itself.
Decision but_not_for_init(unsigned pid, Decision decision) {
  decision.cases.insert(decision.cases.begin(), Case{{low(pid, {1})}, kRefuse});
  return decision;
}
// The same, and not for all processes of a user either, of which init may be one. `everyone` is the
// value of the first argument that means this: PRIO_USER, IOPRIO_WHO_USER.
Decision priority_rules(std::uint32_t everyone) {
  return {{{{low(0, {everyone})}, kRefuse}, {{low(1, {1})}, kRefuse}}, kAllow};
}

// Segment bases, CPUID faulting's state and the permission for wide registers; not the rest.
Decision arch_prctl_rules() {
  return {{{{low(0, {0x1001, 0x1002, 0x1003, 0x1004, 0x1011, 0x1021, 0x1022, 0x1023, 0x3001})},
            kAllow}},
          kRefuse};
}

Decision checked(std::string_view name, Profile profile) {
  if (name == "socket") return socket_rules();
  if (name == "socketpair") return {{{{low(0, {AF_UNIX})}, kAllow}}, error(EAFNOSUPPORT)};
  if (name == "clone") return namespaces(kNamespacesOfClone);
  if (name == "unshare") return namespaces(kNamespacesOfUnshare);
  if (name == "ioctl") return ioctl_rules();
  if (name == "prctl") return prctl_rules();
  if (name == "arch_prctl") return arch_prctl_rules();
  if (name == "personality") return personality_rules(profile);
  if (name == "seccomp") return seccomp_rules();
  if (name == "mknod") return mknod_rules(1);
  if (name == "mknodat") return mknod_rules(2);
  if (name == "prlimit64") return but_not_for_init(0, prlimit_rules());
  if (name.starts_with("sched_set")) return but_not_for_init(0, {{}, kAllow});
  if (name == "setpriority") return priority_rules(PRIO_USER);
  if (name == "ioprio_set") return priority_rules(kIoprioWhoUser);
  if (name == "setrlimit") return setrlimit_rules();
  if (name == "fcntl") return lease_rules();
  std::abort();  // calls.cc marks a call as checked that has no rules here
}

Decision decide(const Call& call, Profile profile) {
  switch (call.standard) {
    case Standard::allow:
      return {{}, kAllow};
    case Standard::refuse:
      return {{}, kRefuse};
    case Standard::absent:
      return {{}, kAbsent};
    case Standard::checked:
      return checked(call.name, profile);
  }
  std::abort();
}

// One process that computes and answers on descriptors that it was given.
constexpr std::string_view kStrict[] = {"brk",
                                        "clock_gettime",
                                        "clock_nanosleep",
                                        "close",
                                        "exit",
                                        "exit_group",
                                        "fstat",
                                        "futex",
                                        "getpid",
                                        "getrandom",
                                        "gettid",
                                        "madvise",
                                        "mmap",
                                        "mprotect",
                                        "mremap",
                                        "munmap",
                                        "nanosleep",
                                        "poll",
                                        "ppoll",
                                        "read",
                                        "readv",
                                        "restart_syscall",
                                        "rt_sigaction",
                                        "rt_sigprocmask",
                                        "rt_sigreturn",
                                        "sched_yield",
                                        "sigaltstack",
                                        "write",
                                        "writev"};
// What a program calls on its way to main() and from there to its end, that no other process is
// started by and nothing is written by but descriptors that it was given.
constexpr std::string_view kProgram[] = {"access",
                                         "chdir",
                                         "clock_getres",
                                         "close_range",
                                         "dup",
                                         "dup2",
                                         "dup3",
                                         "execve",
                                         "faccessat",
                                         "faccessat2",
                                         "fadvise64",
                                         "fchdir",
                                         "fcntl",
                                         "fstatfs",
                                         "futex_waitv",
                                         "getcpu",
                                         "getcwd",
                                         "getdents64",
                                         "getegid",
                                         "geteuid",
                                         "getgid",
                                         "getgroups",
                                         "getpgid",
                                         "getpgrp",
                                         "getppid",
                                         "getresgid",
                                         "getresuid",
                                         "getrlimit",
                                         "getrusage",
                                         "getsid",
                                         "gettimeofday",
                                         "getuid",
                                         "kill",
                                         "lseek",
                                         "lstat",
                                         "mincore",
                                         "msync",
                                         "newfstatat",
                                         "pread64",
                                         "preadv",
                                         "pselect6",
                                         "readlink",
                                         "readlinkat",
                                         "rseq",
                                         "rt_sigpending",
                                         "rt_sigsuspend",
                                         "rt_sigtimedwait",
                                         "sched_getaffinity",
                                         "select",
                                         "set_robust_list",
                                         "set_tid_address",
                                         "setitimer",
                                         "stat",
                                         "statfs",
                                         "statx",
                                         "sysinfo",
                                         "tgkill",
                                         "time",
                                         "times",
                                         "umask",
                                         "uname"};
// Of the calls that are judged by their arguments, those of a program.
constexpr std::string_view kProgramChecked[] = {"arch_prctl", "ioctl", "prctl", "prlimit64"};
constexpr std::string_view kDebug[] = {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp"};
// A browser runs with --no-sandbox: its own sandbox needs namespaces that it does not get.
constexpr std::string_view kBrowser[] = {"kcmp"};

std::span<const std::string_view> added(Profile profile) {
  if (profile == Profile::debug) return kDebug;
  if (profile == Profile::browser) return kBrowser;
  return {};
}

// Opening to read, and nothing else; openat2 keeps its flags behind a pointer and so looks absent.
Decision read_only(unsigned flags) {
  constexpr std::uint32_t kTmpFile = 020000000;  // __O_TMPFILE
  constexpr std::uint32_t kWrites = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | kTmpFile;
  return {{{{masked(flags, kWrites, {0})}, kAllow}}, kRefuse};
}

void add_program(Table& table, Arch arch) {
  const auto put = [&](std::string_view name, Decision decision) {
    if (const auto number = number_of(name, arch)) table.calls[*number] = std::move(decision);
  };
  for (const std::string_view name : kProgram) put(name, {{}, kAllow});
  for (const std::string_view name : kProgramChecked) put(name, checked(name, Profile::strict));
  put("open", read_only(1));
  put("openat", read_only(2));
  put("openat2", {{}, kAbsent});
}

// What a machine monitor does besides: memory of the guest, its disks and ports, and waiting.
constexpr std::string_view kVmm[] = {
    "epoll_create1", "epoll_ctl",  "epoll_pwait",    "epoll_wait",      "eventfd2",
    "fallocate",     "fdatasync",  "fsync",          "ftruncate",       "getpeername",
    "getsockname",   "getsockopt", "memfd_create",   "pwrite64",        "pwritev",
    "recvfrom",      "recvmsg",    "sendmsg",        "sendto",          "setsockopt",
    "shutdown",      "signalfd4",  "timerfd_create", "timerfd_gettime", "timerfd_settime"};

// Threads of this process, and no process.
Decision thread_rules() {
  constexpr std::uint32_t kThread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND;
  return {{{{masked(0, kThread | kNamespacesOfClone, {kThread})}, kAllow}}, kRefuse};
}

void add_vmm(Table& table, Arch arch) {
  const auto put = [&](std::string_view name, Decision decision) {
    if (const auto number = number_of(name, arch)) table.calls[*number] = std::move(decision);
  };
  for (const std::string_view name : kVmm) put(name, {{}, kAllow});
  put("clone", thread_rules());
  // Nothing is made or cut; what may be written at all is Landlock's to say.
  constexpr std::uint32_t kTmpFile = 020000000;
  put("openat", {{{{masked(2, O_CREAT | O_TRUNC | kTmpFile, {0})}, kAllow}}, kRefuse});
}

bool is_strict(Profile profile) {
  return profile == Profile::strict || profile == Profile::strict_program ||
         profile == Profile::vmm;
}

}  // namespace

Decision socket_rules() {
  constexpr std::uint32_t kType = 0xf;  // SOCK_TYPE_MASK; above it SOCK_CLOEXEC and SOCK_NONBLOCK
  const Part inet = low(0, {AF_INET, AF_INET6});
  const Part type = masked(1, kType, {SOCK_STREAM, SOCK_DGRAM});
  constexpr std::uint32_t kTcp = 6;
  constexpr std::uint32_t kUdp = 17;
  return {{{{low(0, {AF_UNIX})}, kAllow},
           {{inet, type, low(2, {0, kTcp, kUdp})}, kAllow},
           // Multipath TCP above all: Go and curl fall back to TCP on this errno.
           {{inet, type}, error(EPROTONOSUPPORT)},
           {{inet}, kRefuse},
           {{low(0, {AF_NETLINK}), low(2, {0})}, kAllow}},  // NETLINK_ROUTE: getifaddrs, Java, Node
          error(EAFNOSUPPORT)};
}

Filter filter(Profile profile) {
  return filter(profile, kThisArch);
}

Filter filter(Profile profile, Arch arch) {
  if (profile == Profile::isolate) return compile(isolate_table(arch), arch);
  Table table{kRefuse, kAbsent};
  for (const Call& call : calls()) {
    const int number = call.number(arch);
    if (number < 0) continue;
    Decision decision = decide(call, profile);
    if (is_strict(profile) && decision.otherwise != kAbsent) decision = {{}, kRefuse};
    table.calls[static_cast<std::size_t>(number)] = std::move(decision);
  }
  const std::span<const std::string_view> more = is_strict(profile) ? kStrict : added(profile);
  for (const std::string_view name : more) {
    if (const auto number = number_of(name, arch)) table.calls[*number] = Decision{{}, kAllow};
  }
  if (profile == Profile::strict_program || profile == Profile::vmm) add_program(table, arch);
  if (profile == Profile::vmm) add_vmm(table, arch);
  return compile(table, arch);
}

}  // namespace confine
