// The standard filter for real: each refused call is made in a child, with the filter and without.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "confine/child_test.h"
#include "confine/confine.h"

namespace confine {
namespace {

enum class With { filter, nothing };

void confine_child(Profile profile) {
  if (!no_new_privs() || !install(filter(profile))) ::_exit(99);
}

// The errno of `act` in a child, 0 when it succeeded.
int error_of(With with, const std::function<long()>& act) {
  const Ended ended = in_child([&] {
    if (with == With::filter) confine_child(Profile::standard);
    errno = 0;
    return act() < 0 ? errno : 0;
  });
  return WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : -WTERMSIG(ended.status);
}

struct Attempt {
  const char* id;  // of the case that it belongs to
  const char* name;
  std::function<long()> act;
  int refused;  // errno under the filter
};

std::function<long()> call(long number, long a = 0, long b = 0, long c = 0, long d = 0,
                           long e = 0) {
  return [=] { return ::syscall(number, a, b, c, d, e); };
}

long namespace_by_clone() {
  // As fork, but with a user namespace: the child leaves at once.
  const long pid = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) ::_exit(0);
  return pid;
}
long fork_by_clone3() {
  clone_args args = {};
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid == 0) ::_exit(0);
  return pid;
}

// Arguments are such that root gets another answer from the kernel itself and nothing is changed.
const std::vector<Attempt>& attempts() {
  static const char nowhere[] = "/no/such/path";
  const long path = reinterpret_cast<long>(nowhere);
  static const std::vector<Attempt> all = {
      {"E24", "unshare user", call(SYS_unshare, CLONE_NEWUSER), EPERM},
      {"E24", "unshare network", call(SYS_unshare, CLONE_NEWNET), EPERM},
      {"E24", "unshare time", call(SYS_unshare, 0x80), EPERM},
      {"E24", "clone user", namespace_by_clone, EPERM},
      {"E24", "clone3", fork_by_clone3, ENOSYS},
      {"E20", "mount", call(SYS_mount, path, path), EPERM},
      {"E21", "umount2", call(SYS_umount2, path), EPERM},
      {"E23", "pivot_root", call(SYS_pivot_root, path, path), EPERM},
      {"E23", "chroot", call(SYS_chroot, path), EPERM},
      {"E26", "setns", call(SYS_setns, -1, 0), EPERM},
      {"E28", "mount_setattr", call(SYS_mount_setattr, -1, path, 0, 0, 0), EPERM},
      {"E20", "fsopen", call(SYS_fsopen, path, 0), EPERM},
      {"E20", "open_tree", call(SYS_open_tree, -1, path, 0), EPERM},
      {"E20", "move_mount", call(SYS_move_mount, -1, path, -1, path), EPERM},
      {"E29", "open_by_handle_at", call(SYS_open_by_handle_at, -1, 0, 0), EPERM},
      {"E30", "name_to_handle_at", call(SYS_name_to_handle_at, -1, path, 0, 0, 0), EPERM},
      {"E30", "fanotify_init", call(SYS_fanotify_init, ~0L, 0), EPERM},
      {"E41", "ptrace", call(SYS_ptrace, 16, 0x7fffffff), EPERM},
      {"E41", "process_vm_readv", call(SYS_process_vm_readv, 0x7fffffff, 0, 0, 0, 0), EPERM},
      {"E41", "process_vm_writev", call(SYS_process_vm_writev, 0x7fffffff, 0, 0, 0, 0), EPERM},
      {"E9", "pidfd_getfd", call(SYS_pidfd_getfd, -1, 0, 0), EPERM},
      {"E43", "io_uring_setup", call(SYS_io_uring_setup, 1, 0), ENOSYS},
      {"E43", "io_uring_enter", call(SYS_io_uring_enter, -1, 0, 0, 0), ENOSYS},
      {"E45", "perf_event_open", call(SYS_perf_event_open, 0, 0, -1, -1, 0), EPERM},
      {"E46", "add_key", call(SYS_add_key, path, path, 0, 0, 0), ENOSYS},
      {"E46", "keyctl", call(SYS_keyctl, 0, -3, 0), ENOSYS},
      {"E46", "request_key", call(SYS_request_key, path, path, 0, 0), ENOSYS},
      {"E47", "bpf", call(SYS_bpf, 0, 0, 0), EPERM},
      {"E48", "reboot", call(SYS_reboot, 1, 2, 3), EPERM},
      {"E48", "swapon", call(SYS_swapon, path, 0), EPERM},
      {"E48", "acct", call(SYS_acct, path), EPERM},
      {"E48", "syslog", call(SYS_syslog, 10, 0, 0), EPERM},
      {"E48", "quotactl", call(SYS_quotactl, -1, path, 0, 0), EPERM},
      {"E48", "kexec_load", call(SYS_kexec_load, 0, 99999, 0, ~0L), EPERM},
      {"E48", "init_module", call(SYS_init_module, 0, 0, 0), EPERM},
      {"E48", "finit_module", call(SYS_finit_module, -1, 0, 0), EPERM},
      {"E48", "iopl", call(SYS_iopl, 4), EPERM},
      {"E48", "ioperm", call(SYS_ioperm, -1, 1, 1), EPERM},
      {"E50", "vsock", call(SYS_socket, 40, SOCK_STREAM, 0), EAFNOSUPPORT},
      {"E51", "packet", call(SYS_socket, AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT},
      {"E51", "raw", call(SYS_socket, AF_INET, SOCK_RAW, 1), EPERM},
      {"E51", "netfilter netlink", call(SYS_socket, AF_NETLINK, SOCK_RAW, 12), EAFNOSUPPORT},
      {"E51", "audit netlink", call(SYS_socket, AF_NETLINK, SOCK_RAW, 15), EAFNOSUPPORT},
      {"E51", "mptcp", call(SYS_socket, AF_INET, SOCK_STREAM, 262), EPROTONOSUPPORT},
      {"E55", "personality", call(SYS_personality, ADDR_NO_RANDOMIZE | READ_IMPLIES_EXEC), EPERM},
      {"E55", "modify_ldt", call(SYS_modify_ldt, 0, 0, 0), EPERM},
      {"E55", "remap_file_pages", call(SYS_remap_file_pages, 0, 0, 0, 0, 0), ENOSYS},
      {"E56", "clock_settime", call(SYS_clock_settime, 0, 0), EPERM},
      {"E56", "settimeofday", call(SYS_settimeofday, 1, 1), EPERM},
      {"E58", "prctl mm", call(SYS_prctl, 35, 15, 1, 0), EPERM},
      {"E58", "prctl securebits", call(SYS_prctl, PR_SET_SECUREBITS, 0), EPERM},
      {"E53", "seccomp listener", call(SYS_seccomp, 1, 8, 0), EPERM},
      {"E61", "memfd_secret", call(SYS_memfd_secret, ~0L), ENOSYS},
      {"E36", "sethostname", call(SYS_sethostname, 0, -1), EPERM},
      {"E44", "userfaultfd", call(SYS_userfaultfd, ~0L), ENOSYS},
      {"E79", "lease", call(SYS_fcntl, -1, F_SETLEASE, F_RDLCK), EPERM},
      {"E48", "kexec_file_load", call(SYS_kexec_file_load, -1, -1, 0, path, ~0L), EPERM},
      {"E51", "xfrm netlink", call(SYS_socket, AF_NETLINK, SOCK_RAW, 6), EAFNOSUPPORT},
      {"E51", "rxrpc", call(SYS_socket, 33, SOCK_DGRAM, AF_INET), EAFNOSUPPORT},
      {"E51", "can", call(SYS_socket, 29, SOCK_RAW, 1), EAFNOSUPPORT},
      {"E51", "tipc", call(SYS_socket, 30, SOCK_SEQPACKET, 0), EAFNOSUPPORT},
      {"E51", "bluetooth", call(SYS_socket, 31, SOCK_RAW, 1), EAFNOSUPPORT},
      {"E51", "kcm", call(SYS_socket, 41, SOCK_DGRAM, 0), EAFNOSUPPORT},
      {"E51", "qipcrtr", call(SYS_socket, 42, SOCK_DGRAM, 0), EAFNOSUPPORT},
      {"E51", "smc", call(SYS_socket, 43, SOCK_STREAM, 0), EAFNOSUPPORT},
      {"E51", "xdp", call(SYS_socket, 44, SOCK_RAW, 0), EAFNOSUPPORT},
      {"E49", "alg", call(SYS_socket, 38, SOCK_SEQPACKET, 0), EAFNOSUPPORT},
      {"E25", "device node", call(SYS_mknodat, -1, path, S_IFCHR | 0600, 0x103), EPERM},
  };
  return all;
}

// E9 E20 E21 E23 E24 E25 E26 E28 E29 E30 E41 E43 E44 E45 E46 E47 E48 E49 E50 E51 E53 E55 E56 E58
// E61
TEST(StandardFilter, refused_calls_answer_as_the_table_says) {
  for (const Attempt& attempt : attempts()) {
    EXPECT_EQ(error_of(With::filter, attempt.act), attempt.refused)
        << attempt.id << ' ' << attempt.name;
  }
}

TEST(StandardFilter, without_the_filter_the_same_calls_reach_the_kernel) {
  // What this kernel may have been built without, where its own answer is the filter's.
  const std::set<std::string> may_be_missing = {"io_uring_setup",
                                                "io_uring_enter",
                                                "userfaultfd",
                                                "memfd_secret",
                                                "alg",
                                                "vsock",
                                                "kexec_load",
                                                "mptcp",
                                                "modify_ldt",
                                                "netfilter netlink",
                                                "audit netlink",
                                                "add_key",
                                                "keyctl",
                                                "request_key",
                                                "xfrm netlink",
                                                "rxrpc",
                                                "can",
                                                "tipc",
                                                "bluetooth",
                                                "kcm",
                                                "qipcrtr",
                                                "smc",
                                                "xdp",
                                                "kexec_file_load"};
  int different = 0;
  for (const Attempt& attempt : attempts()) {
    const int free = error_of(With::nothing, attempt.act);
    if (free != attempt.refused) {
      ++different;
    } else {
      EXPECT_TRUE(may_be_missing.contains(attempt.name))
          << attempt.id << ' ' << attempt.name << ' ' << free;
    }
  }
  EXPECT_GT(different, 40);
}

// E24: another table of numbers is another architecture, and x32's are absent.
TEST(StandardFilter, other_call_tables_are_closed) {
  EXPECT_EQ(error_of(With::filter, call(0x40000000 | SYS_getpid)), ENOSYS);
  EXPECT_EQ(error_of(With::filter, call(0x40000038)), ENOSYS);
#ifdef __x86_64__
  const auto old_getpid = [] {
    long result = 20;  // getpid of i386
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result;
  };
  EXPECT_EQ(error_of(With::filter, old_getpid), -SIGSYS);
#endif
}

// E63: CVE-2019-10063: the kernel looks at the low half of the request.
TEST(StandardFilter, input_cannot_be_pushed_into_a_terminal) {
  const auto push = [](std::uint64_t more) {
    return [more]() -> long {
      ::setsid();
      const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
      if (master < 0 || ::unlockpt(master) != 0) return -1;
      const int terminal = ::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
      if (terminal < 0 || ::ioctl(terminal, TIOCSCTTY, 0) != 0) return -1;
      return ::syscall(SYS_ioctl, terminal, more | TIOCSTI, "x");
    };
  };
  EXPECT_EQ(error_of(With::filter, push(0)), EPERM);
  EXPECT_EQ(error_of(With::filter, push(1ULL << 32)), EPERM);
  EXPECT_EQ(error_of(With::filter, call(SYS_ioctl, 0, TIOCLINUX)), EPERM);
  EXPECT_EQ(error_of(With::filter, call(SYS_ioctl, 0, TIOCSETD)), EPERM);
  EXPECT_EQ(error_of(With::nothing, push(1ULL << 32)), 0);
}

// E60: allowed by design.
TEST(StandardFilter, an_anonymous_file_can_be_executed) {
  const Ended ended = in_child([] {
    confine_child(Profile::standard);
    const int memory = ::memfd_create("true", MFD_CLOEXEC);
    const auto program = os::read_file("/bin/true", 16 << 20);
    if (!program || !os::write_all(memory, *program, "memfd")) return 1;
    const char* argv[] = {"true", nullptr};
    ::syscall(SYS_execveat, memory, "", argv, argv + 1, AT_EMPTY_PATH);
    return 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

// E31: the limit that keeps a piped core_pattern from running cannot be taken back, and nobody ends
// over it.
TEST(StandardFilter, the_core_limit_stays) {
  const Ended ended = in_child([] {
    if (!rlimits(0)) return 1;
    confine_child(Profile::standard);
    const rlimit none = {0, 0};
    rlimit now = {};
    if (::setrlimit(RLIMIT_CORE, &none) != 0) return 2;  // pretended
    if (::getrlimit(RLIMIT_CORE, &now) != 0 || now.rlim_cur != 1 || now.rlim_max != 1) return 3;
    const rlimit few = {50, 50};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return 4;  // others are as they were
    if (::getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_max != 50) return 5;
    return 0;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(StandardFilter, ordinary_work_goes_on) {
  const Ended python = in_child([] {
    confine_child(Profile::standard);
    return become_program(
        {"/usr/bin/python3", "-c",
         "import asyncio, multiprocessing, os, socket, subprocess, sqlite3, tempfile, threading\n"
         "async def main():\n"
         "    p = await asyncio.create_subprocess_exec('/bin/echo', 'asyncio', stdout=-1)\n"
         "    print((await p.communicate())[0].decode().strip())\n"
         "asyncio.run(main())\n"
         "t = threading.Thread(target=lambda: print('thread', flush=True)); t.start(); t.join()\n"
         "print(subprocess.check_output(['/bin/sh', '-c', 'echo a | cat; ls / | wc -l "
         ">/dev/null']).decode().strip())\n"
         "a, b = socket.socketpair(); a.send(b'pair'); print(b.recv(4).decode())\n"
         "s = socket.create_server(('127.0.0.1', 0)); c = "
         "socket.create_connection(s.getsockname()); print('tcp')\n"
         "d = tempfile.mkdtemp(); db = sqlite3.connect(d + '/x'); db.execute('pragma "
         "journal_mode=wal'); "
         "db.execute('create table t(a)'); db.commit(); print('sqlite')\n"
         "import shutil; shutil.copytree(d, d + '2'); shutil.rmtree(d); shutil.rmtree(d + '2'); "
         "print('files')\n"
         "with multiprocessing.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))\n"
         "print(len(os.sched_getaffinity(0)) > 0)\n"});
  });
  EXPECT_TRUE(python.exited(0)) << python.status << python.output;
  EXPECT_EQ(python.output, "asyncio\nthread\na\npair\ntcp\nsqlite\nfiles\n[1, 2]\nTrue\n");
}

TEST(StrictFilter, computes_and_writes_and_nothing_else) {
  const Ended work = in_child([] {
    confine_child(Profile::strict);
    return ::write(1, "ok", 2) == 2 ? 0 : 1;
  });
  EXPECT_TRUE(work.exited(0));
  EXPECT_EQ(work.output, "ok");
  for (const auto& act :
       {call(SYS_socket, AF_UNIX, SOCK_STREAM, 0),
        call(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/"), 0), call(SYS_execve, 0, 0, 0),
        call(SYS_clone, SIGCHLD), call(SYS_kill, 0, 0)}) {
    const Ended ended = in_child([&] {
      confine_child(Profile::strict);
      return act() < 0 && errno == EPERM ? 0 : 1;
    });
    EXPECT_TRUE(ended.exited(0)) << ended.status;
  }
}

TEST(Install, an_empty_program_is_an_error) {
  EXPECT_EQ(install({}).error().number, EINVAL);
}

}  // namespace
}  // namespace confine
