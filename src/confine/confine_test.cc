// Landlock, capabilities, limits and identity, each with the same attempt made without it.
#include "confine/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "confine/child_test.h"

namespace confine {
namespace {

// --- Identity ----------------------------------------------------------------------------------

// In a user namespace with a map of one id groups cannot be given up; there, and there alone,
// nothing has to be.
TEST(Become, WhoCanBeNobodyElseStaysAsItIs) {
  const Ended ended = in_child([] {
    const gid_t groups[] = {4242};
    if (::setgroups(1, groups) != 0 || ::setresgid(1000, 1000, 1000) != 0 ||
        ::setresuid(1000, 1000, 1000) != 0) {
      return 1;  // no root here
    }
    if (!become(1000, 1000)) return 2;
    if (become(1000, 1001) || become(1001, 1000)) return 3;
    return 0;
  });
  if (::geteuid() != 0) GTEST_SKIP() << "takes root";
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Become, WhoCouldBeSomebodyElseGivesItsGroupsUp) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes root";
  const Ended ended = in_child([] {
    const gid_t groups[] = {4242};
    if (::setgroups(1, groups) != 0 || !become(0, 0)) return 1;
    return ::getgroups(0, nullptr);
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(LimitProcesses, HoldsForTheUidInItsOwnNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes root";
  const auto forks = [](std::uint64_t most) {
    return in_child([most] {
      if (::setresgid(1000, 1000, 1000) != 0 || ::setresuid(1000, 1000, 1000) != 0) return 99;
      if (::unshare(CLONE_NEWUSER) != 0 || !keep_capabilities(kNone)) return 98;
      if (most != 0 && !limit_processes(most)) return 97;
      int made = 0;
      for (; made < 20; ++made) {
        const pid_t pid = ::fork();
        if (pid == 0) ::_exit(::pause());
        if (pid < 0) break;
      }
      const int error = errno;
      (void)::signal(SIGTERM, SIG_IGN);
      (void)::kill(0, SIGTERM);
      return made < 20 && error != EAGAIN ? 96 : made;
    });
  };
  EXPECT_TRUE(forks(5).exited(4)) << "itself is one";
  EXPECT_TRUE(forks(0).exited(20)) << "the control";
}

// --- Landlock ----------------------------------------------------------------------------------

class LandlockTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = std::filesystem::temp_directory_path() / "cerco-landlock-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    for (const char* name : {"/read", "/write", "/write2", "/out"}) {
      std::filesystem::create_directory(folder_ + name);
      std::ofstream(folder_ + name + "/f") << "content";
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // 0 or the errno of `act` in a child, under Landlock or not.
  int error_of(bool confined, const std::function<long()>& act) {
    const Ended ended = in_child([&] {
      const std::string read[] = {folder_ + "/read", "/usr", "/lib", "/lib64", "/bin"};
      const std::string write[] = {folder_ + "/write", folder_ + "/write2", "/dev/null"};
      if (confined && (!no_new_privs() || !landlock(read, write))) return 99;
      errno = 0;
      return act() < 0 ? errno : 0;
    });
    return WIFEXITED(ended.status) ? WEXITSTATUS(ended.status) : -1;
  }
  std::string folder_;
};

TEST_F(LandlockTest, paths_are_open_as_far_as_the_lists_say) {
  struct Row {
    const char* what;
    std::function<long()> act;
    int refused;  // 0: allowed
  };
  const std::string in = folder_ + "/read/";
  const std::string rw = folder_ + "/write/";
  const std::string rw2 = folder_ + "/write2/";
  const std::string out = folder_ + "/out/";
  const auto opens = [](const std::string& path, int flags) {
    return [=]() -> long { return ::open(path.c_str(), flags, 0600); };
  };
  const std::vector<Row> rows = {
      {"read in the read list", opens(in + "f", O_RDONLY), 0},
      {"list in the read list", opens(in, O_RDONLY | O_DIRECTORY), 0},
      {"write in the read list", opens(in + "f", O_WRONLY), EACCES},
      {"make in the read list", opens(in + "g", O_WRONLY | O_CREAT), EACCES},
      {"truncate in the read list", [=]() -> long { return ::truncate((in + "f").c_str(), 0); },
       EACCES},
      {"unlink in the read list", [=]() -> long { return ::unlink((in + "f").c_str()); }, EACCES},
      {"read in the write list", opens(rw + "f", O_RDONLY), 0},
      {"write in the write list", opens(rw + "f", O_WRONLY | O_TRUNC), 0},
      {"make in the write list", opens(rw + "g", O_WRONLY | O_CREAT), 0},
      {"fifo in the write list", [=]() -> long { return ::mkfifo((rw + "p").c_str(), 0600); }, 0},
      {"truncate in the write list", [=]() -> long { return ::truncate((rw + "f").c_str(), 0); },
       0},
      {"rename between write lists",
       [=]() -> long { return ::rename((rw + "f").c_str(), (rw2 + "h").c_str()); }, 0},
      {"rename out of the lists",
       [=]() -> long { return ::rename((rw2 + "f").c_str(), (out + "h").c_str()); }, EACCES},
      {"a file in the write list", opens("/dev/null", O_RDWR), 0},
      {"read elsewhere", opens(out + "f", O_RDONLY), EACCES},
      {"list elsewhere", opens(out, O_RDONLY | O_DIRECTORY), EACCES},
      {"write elsewhere", opens(out + "f", O_WRONLY), EACCES},
      {"by a parent", opens(rw + "../out/f", O_RDONLY), EACCES},
      {"link to elsewhere",
       [=]() -> long { return ::link((out + "f").c_str(), (rw + "l").c_str()); }, EXDEV},
      {"the host's secrets", opens("/etc/shadow", O_RDONLY), EACCES},
      {"execute in the read list",
       [] { return in_child([] { return become_program({"/bin/true"}); }).exited(0) ? 0L : -1L; },
       0},
  };
  for (const Row& row : rows) EXPECT_EQ(error_of(true, row.act), row.refused) << row.what;
  // Positive control: without it everything that was refused is done.
  SetUp();
  for (const Row& row : rows) {
    if (row.refused != 0 && std::string(row.what) != "rename out of the lists") {
      EXPECT_EQ(error_of(false, row.act), 0) << row.what;
    }
  }
}

// The start of init: an anonymous file is no path, so that it can be executed under any lists.
TEST_F(LandlockTest, a_sealed_anonymous_file_can_be_executed) {
  const auto program = os::read_file("/bin/busybox", 8 << 20);
  const auto bytes = program ? program : os::read_file(CERCO_BUILD_DIR "/cerco-init", 8 << 20);
  ASSERT_TRUE(bytes);
  const auto memory = os::sealed_memfd("program", *bytes);
  ASSERT_TRUE(memory);
  const Ended ended = in_child([&] {
    if (!no_new_privs() || !landlock({}, {}) || ::dup2(memory->get(), 700) != 700) return 99;
    if (::syscall(SYS_close_range, 3, 699, 0) != 0) return 97;
    const char* argv[] = {"true", nullptr};
    (void)::fcntl(700, F_SETFD, FD_CLOEXEC);
    ::syscall(SYS_execveat, 700, "", argv, argv + 1, AT_EMPTY_PATH);
    return 98;
  });
  // cerco-init says 125 where no channel is, whatever number its own first descriptor gets.
  EXPECT_TRUE(ended.exited(0) || ended.exited(125)) << ended.status;
}

// E84, E100: where the kernel has the scopes, abstract sockets and signals end at the domain.
TEST_F(LandlockTest, abstract_sockets_and_signals_end_at_the_domain) {
  if (landlock_abi() < 6) GTEST_SKIP() << "this kernel has no scopes";
  const std::string name = "cerco-" + std::to_string(::getpid());
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const base::Fd listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const auto connects = [&]() -> long {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return fd;
    return ::connect(fd, reinterpret_cast<sockaddr*>(&address), size);
  };
  const auto signals = []() -> long { return ::kill(::getppid(), 0); };
  EXPECT_EQ(error_of(true, connects), EPERM);
  EXPECT_EQ(error_of(true, signals), EPERM);
  EXPECT_EQ(error_of(false, connects), 0);
  EXPECT_EQ(error_of(false, signals), 0);
}

TEST_F(LandlockTest, a_path_that_does_not_exist_is_an_error) {
  const Ended ended = in_child([&] {
    const std::string read[] = {folder_ + "/none"};
    const Outcome done = landlock(read, {});
    return done ? 0 : done.error().number;
  });
  EXPECT_TRUE(ended.exited(ENOENT));
}

// --- Capabilities and identity -------------------------------------------------------------------

constexpr Capabilities kInit = bit(CAP_SETUID) | bit(CAP_SETGID) | bit(CAP_KILL);

std::string status_after(const std::function<bool()>& act) {
  return in_child([&] { return act() ? become_program({"/bin/cat", "/proc/self/status"}) : 97; })
      .output;
}
std::string field(const std::string& status, const std::string& name) {
  const std::size_t at = status.find("\n" + name + ":\t");
  if (at == std::string::npos) return "(none)";
  const std::size_t start = at + name.size() + 3;
  return status.substr(start, status.find('\n', start) - start);
}
constexpr char kNoneHeld[] = "0000000000000000";
constexpr char kInitHeld[] = "00000000000000e0";

TEST(Capabilities, a_program_starts_with_exactly_what_was_kept) {
  const std::string status = status_after([] { return start_with(kInit).has_value(); });
  EXPECT_EQ(field(status, "CapPrm"), kInitHeld);
  EXPECT_EQ(field(status, "CapEff"), kInitHeld);
  EXPECT_EQ(field(status, "CapAmb"), kInitHeld);
  EXPECT_EQ(field(status, "CapInh"), kInitHeld);
  EXPECT_EQ(field(status, "CapBnd"), kNoneHeld);
  // Positive control: root's program holds what the bounding set has.
  EXPECT_NE(field(status_after([] { return true; }), "CapEff"), kInitHeld);
}

// The whole way: what init starts with, then what a command is left with, uid 0 included.
TEST(Capabilities, from_init_to_a_command_nothing_is_left) {
  for (const std::uint32_t uid : {1000U, 0U}) {
    const std::string status = status_after([uid] {
      return start_with(kInit) && drop_bounding() && become(uid, uid) && keep_capabilities(kNone);
    });
    for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
      EXPECT_EQ(field(status, set), kNoneHeld) << uid << set;
    const std::string ids = std::to_string(uid);
    EXPECT_EQ(field(status, "Uid"), fmt::format("{0}\t{0}\t{0}\t{0}", ids));
    EXPECT_EQ(field(status, "Groups"), " ");
  }
}

TEST(Capabilities, what_is_not_held_cannot_be_kept) {
  const Ended ended = in_child([] {
    if (!keep_capabilities(bit(CAP_KILL))) return 1;
    const Outcome more = keep_capabilities(bit(CAP_KILL) | bit(CAP_SYS_ADMIN));
    return !more && more.error() == Failure{"capset", EPERM} ? 0 : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Capabilities, a_bounding_set_that_cannot_be_emptied_is_an_error) {
  const Ended ended = in_child([] {
    if (!keep_capabilities(kNone)) return 1;
    const Outcome done = drop_bounding();
    return !done && done.error().number == EPERM ? 0 : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Identity, there_is_no_way_back) {
  const Ended ended = in_child([] {
    if (!become(1000, 1000)) return 1;
    return ::setuid(0) != 0 && ::setgid(0) != 0 && ::seteuid(0) != 0 ? 0 : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Identity, others_of_the_same_user_cannot_look_into_what_is_not_dumpable) {
  const auto looked_into = [](bool hidden) {
    return in_child([hidden] {
      if (!become(1000, 1000)) return 1;
      if (::prctl(PR_SET_DUMPABLE, 1) != 0) return 1;
      if (hidden && !not_dumpable()) return 1;
      const std::string mine = "/proc/" + std::to_string(::getpid()) + "/environ";
      return in_child([&] { return ::open(mine.c_str(), O_RDONLY) >= 0 ? 0 : errno; }).exited(0)
                 ? 10
                 : 11;
    });
  };
  EXPECT_TRUE(looked_into(true).exited(11));
  EXPECT_TRUE(looked_into(false).exited(10));
}

// E46
TEST(Identity, the_session_keyring_is_a_new_one) {
  const auto keyring = [] { return ::syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3, 1); };
  const long before = keyring();
  if (before < 0) GTEST_SKIP() << "this kernel has no keyrings";
  const Ended ended = in_child([&] {
    if (!new_session_keyring()) return 1;
    return keyring() != before ? 0 : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Limits, are_set_hard_and_core_stays_one) {
  const Ended ended = in_child([] {
    if (!rlimits(64)) return 1;
    rlimit files = {};
    rlimit core = {};
    ::getrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_CORE, &core);
    return files.rlim_cur == 64 && files.rlim_max == 64 && core.rlim_cur == 1 && core.rlim_max == 1
               ? 0
               : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Limits, what_is_above_the_hard_limit_is_an_error) {
  const Ended ended = in_child([] {
    if (!rlimits(64) || !keep_capabilities(kNone)) return 1;
    const Outcome more = rlimits(65);
    return !more && more.error() == Failure{"setrlimit RLIMIT_NOFILE", EPERM} ? 0 : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Descriptors, are_closed_from_the_first_on) {
  const Ended ended = in_child([] {
    const int high = ::fcntl(0, F_DUPFD, 700);
    if (high < 700 || !close_from(2)) return 1;
    return ::fcntl(high, F_GETFD) < 0 && ::fcntl(2, F_GETFD) < 0 && ::fcntl(1, F_GETFD) >= 0 ? 0
                                                                                             : 2;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST(Errors, name_the_step) {
  const auto error = as_status(std::unexpected(Failure{"setuid", EPERM}), "start command");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().line(), "start command: setuid: EPERM (Operation not permitted)");
  EXPECT_TRUE(as_status({}, "x"));
}

}  // namespace
}  // namespace confine
