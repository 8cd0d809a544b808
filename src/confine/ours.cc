// The filters of our own processes: what each calls after it has made itself ready. Everything else
// kills.
#include <asm/ioctls.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>

#include "confine/rules.h"

namespace confine {
namespace {

using Names = std::span<const std::string_view>;

// Memory, time, ends: what every program of ours makes, with the C library under it.
constexpr std::string_view kAll[] = {"brk",          "clock_gettime",  "clock_nanosleep",
                                     "close",        "exit",           "exit_group",
                                     "fstat",        "futex",          "getpid",
                                     "getrandom",    "gettid",         "gettimeofday",
                                     "lseek",        "madvise",        "mremap",
                                     "munmap",       "nanosleep",      "pipe2",
                                     "poll",         "ppoll",          "read",
                                     "readv",        "recvmsg",        "restart_syscall",
                                     "rt_sigaction", "rt_sigprocmask", "rt_sigreturn",
                                     "sched_yield",  "sendmsg",        "sysinfo",
                                     "tgkill",       "write",          "writev",
                                     "getuid",       "geteuid",        "getgid",
                                     "getegid",      "getppid",        "uname"};
// Waiting on many descriptors.
constexpr std::string_view kWaiting[] = {"epoll_create1",
                                         "epoll_ctl",
                                         "epoll_pwait",
                                         "epoll_pwait2",
                                         "epoll_wait",
                                         "eventfd2",
                                         "timerfd_create",
                                         "timerfd_gettime",
                                         "timerfd_settime",
                                         "signalfd4",
                                         "dup",
                                         "dup3"};
// The only process with an outside end. Secrets that it looks for in answers lie in locked memory.
constexpr std::string_view kGateway[] = {
    "accept",     "accept4",  "bind",     "connect",  "getpeername",       "getsockname",
    "getsockopt", "listen",   "recvfrom", "recvmmsg", "sendmmsg",          "sendto",
    "setsockopt", "shutdown", "splice",   "pread64",  "sched_getaffinity", "getcpu",
    "mlock",      "munlock"};
// Dials token endpoints, one after another; nothing can be accepted or bound.
constexpr std::string_view kMinter[] = {
    "connect",  "getpeername",       "getsockname", "getsockopt", "recvfrom",
    "recvmmsg", "sendmmsg",          "sendto",      "setsockopt", "shutdown",
    "pread64",  "sched_getaffinity", "getcpu"};
// Holds secrets in locked memory (libsodium: mlock, guard pages, MADV_DONTDUMP).
constexpr std::string_view kBroker[] = {"mlock",     "munlock",  "pread64", "pwrite64",
                                        "ftruncate", "recvfrom", "sendto",  "shutdown"};
// Appends, syncs and begins new files below its own folder; Landlock holds it there.
constexpr std::string_view kJournal[] = {
    "fdatasync",  "fsync",    "flock",     "ftruncate", "getdents64", "mkdirat",
    "newfstatat", "openat",   "openat2",   "pread64",   "pwrite64",   "pwritev",
    "recvfrom",   "renameat", "renameat2", "sendto",    "shutdown",   "unlinkat",
    "mlock",      "munlock",  "statx",     "fchmod",    "fallocate",  "sync_file_range"};
// Serves a file session inside a sandbox with the rights of the workload's user.
constexpr std::string_view kFiles[] = {"fchmod",     "fstatfs",   "getdents64", "mkdirat",
                                       "newfstatat", "openat",    "openat2",    "pread64",
                                       "readlinkat", "symlinkat", "unlinkat",   "dup",
                                       "recvfrom",   "sendto",    "umask",      "pwrite64"};
// Carries bytes between descriptors that it was given, and makes pipes and pairs of sockets.
constexpr std::string_view kTunnel[] = {"getsockopt", "shutdown", "socketpair"};
// Copies between two sockets that it has.
constexpr std::string_view kConnection[] = {"recvfrom", "sendto", "shutdown"};
// The same, for sockets that it accepts.
constexpr std::string_view kPublisher[] = {"accept4",    "recvfrom",   "sendto",
                                           "setsockopt", "getsockopt", "shutdown"};
// Looking at paths by the C library for things that it can do without (time zones, locales,
// settings).
constexpr std::string_view kPaths[] = {
    "access", "faccessat", "faccessat2", "getcwd", "lstat",  "newfstatat", "open",
    "openat", "readlink",  "readlinkat", "stat",   "statfs", "statx"};
// What the sanitizers' runtime adds.
constexpr std::string_view kSanitizers[] = {
    "sigaltstack", "getrlimit",   "getrusage", "sched_getaffinity", "mmap",
    "mprotect",    "personality", "prctl",     "prlimit64",         "set_robust_list"};

Names names(Own own) {
  switch (own) {
    case Own::gateway:
      return kGateway;
    case Own::broker:
      return kBroker;
    case Own::journal:
      return kJournal;
    case Own::files:
      return kFiles;
    case Own::tunnel:
      return kTunnel;
    case Own::connection:
      return kConnection;
    case Own::publisher:
      return kPublisher;
    case Own::minter:
      return kMinter;
  }
  std::abort();
}

class Listing {
 public:
  Listing(Table& table, Arch arch) : table_(table), arch_(arch) {}
  void put(std::string_view name, const Decision& decision) {
    if (const auto number = number_of(name, arch_)) table_.calls[*number] = decision;
  }
  void put_all(Names all, Verdict verdict) {
    for (const std::string_view name : all) put(name, {{}, verdict});
  }

 private:
  Table& table_;
  Arch arch_;
};

// Memory is never made executable: code that was not in the program's file does not run.
Decision no_execution() {
  return {{{{{2, Half::low, PROT_EXEC, {0}}}, kAllow}}, kKill};
}

Decision fcntl_rules() {
  return {{{{{1,
              Half::low,
              ~0U,
              {F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK,
               F_OFD_SETLK, F_OFD_SETLKW, F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS,
               F_GET_SEALS}}},
            kAllow}},
          kKill};
}

// How much can be read, and blocking or not; isatty() and the rest are told that this is no
// terminal.
Decision ioctl_rules() {
  return {{{{{1, Half::low, ~0U, {FIONBIO, FIONREAD}}}, kAllow}}, error(ENOTTY)};
}

// Reading a limit (sysconf), not setting one.
Decision prlimit_rules() {
  return {{{{{2, Half::low, ~0U, {0}}, {2, Half::high, ~0U, {0}}}, kAllow}}, kKill};
}

// The workload's socket rules without Unix peers: the gateway has all of these that it needs.
Decision gateway_sockets() {
  Decision rules = socket_rules();
  for (Case& one : rules.cases) {
    for (const Part& part : one.all) {
      if (part == Part{0, Half::low, ~0U, {AF_UNIX}}) one.verdict = kKill;
    }
  }
  rules.otherwise = kKill;
  return rules;
}

}  // namespace

Filter filter(Own own) {
  return filter(own, kThisArch, kThisBuild);
}

Filter filter(Own own, Arch arch, Build build) {
  Table table{kKill, kKill};
  Listing listing(table, arch);
  listing.put_all(kPaths, error(EACCES));
  listing.put_all(kAll, kAllow);
  const bool waits = own != Own::files && own != Own::tunnel && own != Own::connection;
  if (waits) listing.put_all(kWaiting, kAllow);
  listing.put("mmap", no_execution());
  listing.put("mprotect", no_execution());
  listing.put("fcntl", fcntl_rules());
  listing.put("ioctl", ioctl_rules());
  listing.put("prlimit64", prlimit_rules());
  if (build == Build::sanitized) listing.put_all(kSanitizers, kAllow);
  listing.put_all(names(own), kAllow);
  if (own == Own::gateway || own == Own::minter) listing.put("socket", gateway_sockets());
  return compile(table, arch);
}

}  // namespace confine
