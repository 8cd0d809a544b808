// Every filter for workloads, over every number, architecture and edge argument, against a decision
// that is written a second time here, from standard_calls.txt and the kernel's own headers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "confine/confine.h"

namespace confine {
namespace {

using Args = std::array<std::uint64_t, 6>;

constexpr std::uint32_t kAllowed = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kKilled = SECCOMP_RET_KILL_PROCESS;
std::uint32_t gives(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

// Calls that Linux 6.1's headers do not have; their numbers are the same everywhere.
const std::map<std::string, int> kNewer = {{"cachestat", 451},         {"fchmodat2", 452},
                                           {"map_shadow_stack", 453},  {"futex_wake", 454},
                                           {"futex_wait", 455},        {"futex_requeue", 456},
                                           {"statmount", 457},         {"listmount", 458},
                                           {"lsm_get_self_attr", 459}, {"lsm_set_self_attr", 460},
                                           {"lsm_list_modules", 461},  {"mseal", 462},
                                           {"setxattrat", 463},        {"getxattrat", 464},
                                           {"listxattrat", 465},       {"removexattrat", 466},
                                           {"open_tree_attr", 467},    {"file_getattr", 468},
                                           {"file_setattr", 469},      {"listns", 470}};
constexpr std::uint32_t kLast = 470;

// number → name, from a header of the kernel.
std::map<std::uint32_t, std::string> header(const std::string& path) {
  std::ifstream in(path);
  std::map<std::uint32_t, std::string> out;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string define, name;
    std::uint32_t number = 0;
    if (!(words >> define >> name >> number) || define != "#define") continue;
    for (const std::string prefix : {"__NR3264_", "__NR_"}) {
      if (name.starts_with(prefix)) {
        out.try_emplace(number, name.substr(prefix.size()));
        break;
      }
    }
  }
  return out;
}

std::map<std::uint32_t, std::string> names(Arch arch) {
  const std::string folder = "/usr/include/";
  auto out = header(folder + (arch == Arch::x86_64 ? "x86_64-linux-gnu/asm/unistd_64.h"
                                                   : "asm-generic/unistd.h"));
  if (arch == Arch::aarch64) {
    out[79] = "newfstatat";       // __NR3264_fstatat
    out[84] = "sync_file_range";  // the header has the form of another architecture first
    // Calls of 32-bit machines and the header's own counts.
    std::erase_if(out, [](const auto& entry) {
      return entry.second.ends_with("_time64") || (entry.first >= 403 && entry.first <= 423) ||
             entry.second == "arch_specific_syscall" || entry.second == "syscalls";
    });
  }
  for (const auto& [name, number] : kNewer) out[static_cast<std::uint32_t>(number)] = name;
  return out;
}

// list → names.
std::map<std::string, std::set<std::string>> table() {
  std::ifstream in(CERCO_SOURCE_DIR "/src/confine/standard_calls.txt");
  std::map<std::string, std::set<std::string>> out;
  std::string list;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with("[")) {
      list = line.substr(1, line.size() - 2);
      continue;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;) out[list].insert(word);
  }
  return out;
}

// What each call that is judged by its arguments should do, in plain C.
std::uint32_t by_argument(const std::string& name, const Args& a, Profile profile) {
  const auto low = [&](int i) {
    return static_cast<std::uint32_t>(a[static_cast<std::size_t>(i)]);
  };
  if (name == "clone") return (low(0) & 0x7E020000) == 0 ? kAllowed : gives(EPERM);
  if (name == "unshare") return (low(0) & 0x7E020080) == 0 ? kAllowed : gives(EPERM);
  if (name == "socketpair") return low(0) == 1 ? kAllowed : gives(EAFNOSUPPORT);
  if (name == "socket") {
    const std::uint32_t type = low(1) & 15;
    if (low(0) == 1) return kAllowed;
    if (low(0) == 16) return low(2) == 0 ? kAllowed : gives(EAFNOSUPPORT);
    if (low(0) != 2 && low(0) != 10) return gives(EAFNOSUPPORT);
    if (type != 1 && type != 2) return gives(EPERM);
    return low(2) == 0 || low(2) == 6 || low(2) == 17 ? kAllowed : gives(EPROTONOSUPPORT);
  }
  if (name == "ioctl") {
    switch (low(1)) {
      case 0x5412:      // TIOCSTI
      case 0x541C:      // TIOCLINUX
      case 0x541D:      // TIOCCONS
      case 0x5423:      // TIOCSETD
      case 0x40086602:  // FS_IOC_SETFLAGS
      case 0x40046602:  // FS_IOC32_SETFLAGS
      case 0x401c5820:  // FS_IOC_FSSETXATTR
        return gives(EPERM);
      default:
        return kAllowed;
    }
  }
  if (name == "personality") {
    const std::set<std::uint32_t> good = {0, 8, 0x20000, 0x20008, 0xffffffff};
    if (good.contains(low(0)) || (profile == Profile::debug && low(0) == 0x40000)) return kAllowed;
    return gives(EPERM);
  }
  if (name == "seccomp") {
    if (low(0) == 1) return (low(1) & 8) == 0 ? kAllowed : gives(EPERM);
    return low(0) <= 3 ? kAllowed : gives(EPERM);
  }
  if (name == "mknod" || name == "mknodat") {
    const std::uint32_t kind = low(name == "mknod" ? 1 : 2) & 0170000;
    return kind == 0 || kind == 0100000 || kind == 0010000 || kind == 0140000 ? kAllowed
                                                                              : gives(EPERM);
  }
  if (name == "setrlimit") return low(0) == 4 ? gives(0) : kAllowed;
  if (name == "fcntl") return low(1) == 1024 ? gives(EPERM) : kAllowed;  // F_SETLEASE
  if (name == "setpriority") return low(0) == 2 || low(1) == 1 ? gives(EPERM) : kAllowed;
  if (name == "ioprio_set") return low(0) == 3 || low(1) == 1 ? gives(EPERM) : kAllowed;
  if (name.starts_with("sched_set")) return low(0) == 1 ? gives(EPERM) : kAllowed;
  if (name == "prlimit64") {
    if (low(0) == 1) return gives(EPERM);
    if (low(1) != 4 || a[2] == 0) return kAllowed;
    return a[3] == 0 ? gives(0) : gives(EPERM);
  }
  if (name == "arch_prctl") {
    const std::set<std::uint32_t> good = {0x1001, 0x1002, 0x1003, 0x1004, 0x1011,
                                          0x1021, 0x1022, 0x1023, 0x3001};
    return good.contains(low(0)) ? kAllowed : gives(EPERM);
  }
  if (name == "prctl") {
    const std::set<std::uint32_t> good = {
        1,  2,  3,  4,  7,  8,  15, 16, 21, 22, 23, 27, 29, 30,         36,         37,
        38, 39, 40, 41, 42, 50, 51, 52, 54, 55, 56, 65, 66, 0x59616d61, 0x53564d41, 0x41555856};
    if (good.contains(low(0))) return kAllowed;
    if (low(0) == 47 && low(1) == 1) return kAllowed;  // PR_CAP_AMBIENT_IS_SET
    if (low(0) == 53 && (low(2) == 4 || low(2) == 8 || low(2) == 16))
      return kAllowed;  // only to disable
    return gives(EPERM);
  }
  ADD_FAILURE() << "no decision for " << name;
  return kKilled;
}

const std::set<std::string> kStrictCalls = {"brk",
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

// What one program with one thread needs beside them to begin, to read files, and to end.
const std::set<std::string> kProgramCalls = {"access",
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
const std::set<std::string> kProgramArguments = {"arch_prctl", "ioctl", "prctl", "prlimit64"};

class Reference {
 public:
  Reference(Profile profile, Arch arch)
      : profile_(profile), arch_(arch), names_(names(arch)), table_(table()) {}
  std::uint32_t decide(std::uint32_t nr, std::uint32_t arch, const Args& args) {
    if (arch != (arch_ == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64)) return kKilled;
    if (nr > kLast) return gives(ENOSYS);  // x32 as well, whose numbers have bit 30
    const auto found = names_.find(nr);
    if (found == names_.end()) return gives(EPERM);
    const std::string& name = found->second;
    const bool absent = table_["ENOSYS"].contains(name);
    if (profile_ == Profile::strict) {
      return kStrictCalls.contains(name) ? kAllowed : gives(absent ? ENOSYS : EPERM);
    }
    if (profile_ == Profile::strict_program) return program(name, args, absent);
    const std::set<std::string> debug = {"ptrace", "process_vm_readv", "process_vm_writev", "kcmp"};
    if (profile_ == Profile::debug && debug.contains(name)) return kAllowed;
    if (profile_ == Profile::browser && name == "kcmp") return kAllowed;
    if (table_["allow"].contains(name)) return kAllowed;
    if (table_["by argument"].contains(name)) return by_argument(name, args, profile_);
    return gives(absent ? ENOSYS : EPERM);
  }
  bool by_argument_at(std::uint32_t nr) {
    const auto found = names_.find(nr);
    if (found == names_.end()) return false;
    return table_["by argument"].contains(found->second) || found->second.starts_with("open");
  }

 private:
  std::uint32_t program(const std::string& name, const Args& args, bool absent) {
    const auto reads = [&](std::size_t at) {
      // O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, __O_TMPFILE
      return (args[at] & (1 | 2 | 0100 | 01000 | 02000 | 020000000)) == 0 ? kAllowed : gives(EPERM);
    };
    if (name == "open") return reads(1);
    if (name == "openat") return reads(2);
    if (name == "openat2") return gives(ENOSYS);
    if (kProgramArguments.contains(name)) return by_argument(name, args, profile_);
    if (kStrictCalls.contains(name) || kProgramCalls.contains(name)) return kAllowed;
    return gives(absent ? ENOSYS : EPERM);
  }

  Profile profile_;
  Arch arch_;
  std::map<std::uint32_t, std::string> names_;
  std::map<std::string, std::set<std::string>> table_;
};

// Values at which some rule changes its mind, with neighbours and with the upper half set.
std::vector<std::uint64_t> edges() {
  std::vector<std::uint64_t> out;
  for (std::uint64_t value = 0; value <= 70; ++value) out.push_back(value);
  for (std::uint64_t bit = 0; bit < 64; ++bit) out.push_back(1ULL << bit);
  for (const std::uint64_t value :
       {0x5412ULL,     0x541CULL,     0x541DULL,     0x5423ULL,     0x40086602ULL, 0x40046602ULL,
        0x401c5820ULL, 0x20008ULL,    0xffffffffULL, 0x7E020000ULL, 0x1011ULL,     0x1200011ULL,
        0x3d0f00ULL,   0x59616d61ULL, 0x53564d41ULL, 0x41555856ULL, 0x80001ULL,    0x80802ULL,
        262ULL,        0100644ULL,    0010644ULL,    0140777ULL,    0060600ULL,    0020600ULL,
        0x1001ULL,     0x1004ULL,     0x1022ULL,     0x3001ULL,     0x5001ULL,     ~0ULL}) {
    for (const std::uint64_t near : {value - 1, value, value + 1, value | std::uint64_t{1} << 32,
                                     value | std::uint64_t{0xdead} << 48}) {
      out.push_back(near);
    }
  }
  return out;
}

void compare(Profile profile, Arch arch) {
  const Filter program = filter(profile, arch);
  Reference reference(profile, arch);
  ASSERT_LE(program.size(), 4096U);
  const std::vector<std::uint64_t> values = edges();
  std::uint64_t compared = 0;
  const auto check = [&](std::uint32_t nr, std::uint32_t machine, const Args& args) {
    ++compared;
    const std::uint32_t got = evaluate(program, nr, machine, args);
    const std::uint32_t want = reference.decide(nr, machine, args);
    if (got != want) {
      ADD_FAILURE() << "nr " << nr << " arch " << machine << std::hex << " args " << args[0] << ' '
                    << args[1] << ' ' << args[2] << ' ' << args[3] << ": " << got << " for "
                    << want;
    }
    return got == want;
  };
  const Args none = {};
  const Args ones = {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL};
  const std::uint32_t machines[] = {AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, AUDIT_ARCH_I386,
                                    AUDIT_ARCH_ARM, 0};
  for (const std::uint32_t machine : machines) {
    for (std::uint32_t nr = 0; nr <= 600; ++nr) {
      for (const std::uint32_t number : {nr, nr | 0x40000000, nr | 0x80000000}) {
        ASSERT_TRUE(check(number, machine, none));
        ASSERT_TRUE(check(number, machine, ones));
      }
      if (!reference.by_argument_at(nr)) continue;
      for (std::size_t at = 0; at < 4; ++at) {
        for (const std::uint64_t value : values) {
          Args one = {};
          one[at] = value;
          ASSERT_TRUE(check(nr, machine, one));
        }
      }
    }
    for (const std::uint32_t number : {0x3fffffffU, 0x7fffffffU, 0xffffffffU})
      ASSERT_TRUE(check(number, machine, none));
  }
  EXPECT_GT(compared, 20'000U);
}

// Arguments that matter together.
void compare_pairs(Profile profile, Arch arch) {
  const Filter program = filter(profile, arch);
  Reference reference(profile, arch);
  const std::uint32_t machine = arch == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
  const std::uint64_t types[] = {0, 1, 2, 3, 4, 5, 10, 0x80001, 0x80802, 0x80803, 1ULL << 32 | 1};
  const std::uint64_t protocols[] = {0,  1,  6,   9,   12,  15,  16,
                                     17, 58, 132, 136, 255, 262, 1ULL << 32};
  const std::uint64_t pointers[] = {0, 1, 0x7fff00001000, 0x7fff00000000};
  for (std::uint32_t nr = 0; nr <= kLast; ++nr) {
    if (!reference.by_argument_at(nr)) continue;
    for (const std::uint64_t family :
         {0, 1, 2, 3, 4, 5, 7, 10, 11, 15, 16, 17, 38, 40, 44, 47, 53}) {
      for (const std::uint64_t type : types) {
        for (const std::uint64_t protocol : protocols) {
          const Args args = {family, type, protocol, 0, 0, 0};
          ASSERT_EQ(evaluate(program, nr, machine, args), reference.decide(nr, machine, args))
              << nr << ' ' << family << ' ' << type << ' ' << protocol;
        }
      }
      for (const std::uint64_t set : pointers) {
        for (const std::uint64_t old : pointers) {
          const Args args = {0, family, set, old, 0, 0};
          ASSERT_EQ(evaluate(program, nr, machine, args), reference.decide(nr, machine, args))
              << nr << ' ' << family;
        }
      }
    }
  }
}

class ProfileTest : public testing::TestWithParam<std::tuple<Profile, Arch>> {};

TEST_P(ProfileTest, decides_as_written_for_every_number_and_edge) {
  compare(std::get<0>(GetParam()), std::get<1>(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(All, ProfileTest,
                         testing::Combine(testing::Values(Profile::strict, Profile::standard,
                                                          Profile::debug, Profile::browser,
                                                          Profile::strict_program),
                                          testing::Values(Arch::x86_64, Arch::aarch64)));

TEST(ProfilePairs, decide_as_written) {
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) compare_pairs(Profile::standard, arch);
}

TEST(ProfileTable, the_reference_covers_every_name_of_the_headers_once) {
  auto lists = table();
  EXPECT_EQ(lists.size(), 4U);
  for (const Arch arch : {Arch::x86_64, Arch::aarch64}) {
    const auto all = names(arch);
    EXPECT_GT(all.size(), 300U);
    for (const auto& [number, name] : all) {
      int listed = 0;
      for (const auto& [list, calls] : lists) listed += calls.contains(name) ? 1 : 0;
      EXPECT_EQ(listed, 1) << name;
    }
  }
}

// The comparison itself can fail: a filter that refuses too little is found.
TEST(ProfileTable, a_changed_verdict_is_seen) {
  Filter program = filter(Profile::standard, Arch::x86_64);
  Reference reference(Profile::standard, Arch::x86_64);
  int differences = 0;
  for (sock_filter& at : program) {
    if (at.code == (BPF_RET | BPF_K) && at.k == gives(EPERM)) {
      at.k = kAllowed;
    }
  }
  for (std::uint32_t nr = 0; nr <= kLast; ++nr) {
    const Args ones = {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL};
    differences += evaluate(program, nr, AUDIT_ARCH_X86_64, ones) !=
                   reference.decide(nr, AUDIT_ARCH_X86_64, ones);
  }
  EXPECT_GE(differences, 1);
}

TEST(Evaluate, what_the_kernel_would_refuse_kills) {
  const Args none = {};
  EXPECT_EQ(evaluate({}, 0, 0, none), kKilled);
  const Filter off_the_end = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}};
  EXPECT_EQ(evaluate(off_the_end, 0, 0, none), kKilled);
  const Filter past_the_data = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 64},
                                {BPF_RET | BPF_K, 0, 0, kAllowed}};
  EXPECT_EQ(evaluate(past_the_data, 0, 0, none), kKilled);
  const Filter unaligned = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 2}, {BPF_RET | BPF_K, 0, 0, kAllowed}};
  EXPECT_EQ(evaluate(unaligned, 0, 0, none), kKilled);
  const Filter far_jump = {{BPF_JMP | BPF_JA, 0, 0, 100}, {BPF_RET | BPF_K, 0, 0, kAllowed}};
  EXPECT_EQ(evaluate(far_jump, 0, 0, none), kKilled);
  const Filter accumulator = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, {BPF_RET | BPF_A, 0, 0, 0}};
  EXPECT_EQ(evaluate(accumulator, 7, 0, none), 7U);
}

// A machine monitor: threads, but neither processes nor sockets, and nothing is created.
TEST(VmmProfile, MakesNoProcessNoSocketAndNoFile) {
  const Filter program = filter(Profile::vmm, Arch::x86_64);
  const auto verdict = [&](std::uint32_t number, const Args& args) {
    return evaluate(program, number, AUDIT_ARCH_X86_64, args);
  };
  constexpr std::uint64_t kThread = CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS;
  EXPECT_EQ(verdict(56, {kThread}), kAllowed);
  EXPECT_EQ(verdict(56, {SIGCHLD}), gives(EPERM));
  EXPECT_EQ(verdict(56, {kThread | CLONE_NEWUSER}), gives(EPERM));
  EXPECT_EQ(verdict(435, {}), gives(ENOSYS));  // clone3, whose flags lie in memory
  for (const std::uint32_t number : {41U, 42U, 49U, 53U, 57U, 58U, 101U, 165U, 272U, 308U, 425U}) {
    EXPECT_NE(verdict(number, {}), kAllowed) << number;  // socket, connect, bind, fork, mount, …
  }
  EXPECT_EQ(verdict(257, {0, 0, O_RDWR}), kAllowed);
  EXPECT_EQ(verdict(257, {0, 0, O_RDWR | O_CREAT}), gives(EPERM));
  for (const std::uint32_t number : {0U, 1U, 9U, 16U, 17U, 18U, 46U, 47U, 202U}) {
    EXPECT_EQ(verdict(number, {}), kAllowed) << number;  // read, write, mmap, ioctl, pread, …
  }
}

}  // namespace
}  // namespace confine
