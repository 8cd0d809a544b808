// The filters of our own processes: what each must not have, that builds with sanitizers only add,
// and the whole of shut_in for real.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "confine/child_test.h"
#include "confine/confine.h"

namespace confine {
namespace {

constexpr std::array kOurs = {Own::gateway, Own::broker,     Own::journal,   Own::files,
                              Own::tunnel,  Own::connection, Own::publisher, Own::minter};
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
using Args = std::array<std::uint64_t, 6>;

bool allows(const Filter& program, std::uint64_t nr, const Args& args) {
  return evaluate(program, static_cast<std::uint32_t>(nr), kMachine, args) == SECCOMP_RET_ALLOW;
}

Filter release(Own own) {
  return filter(own, Arch::x86_64, Build::release);
}

TEST(OwnFilter, what_no_process_of_ours_may_do_kills) {
  for (const Own own : kOurs) {
    const long numbers[] = {SYS_execve,
                            SYS_execveat,
                            SYS_fork,
                            SYS_vfork,
                            SYS_clone,
                            SYS_clone3,
                            SYS_ptrace,
                            SYS_mount,
                            SYS_setns,
                            SYS_unshare,
                            SYS_bpf,
                            SYS_io_uring_setup,
                            SYS_keyctl,
                            SYS_process_vm_writev,
                            SYS_pidfd_getfd,
                            SYS_kill,
                            SYS_setuid,
                            SYS_capset,
                            SYS_prctl,
                            SYS_seccomp,
                            SYS_chroot,
                            SYS_personality,
                            SYS_pkey_mprotect,
                            SYS_memfd_create,
                            499};
    for (const long nr : numbers) {
      EXPECT_EQ(evaluate(release(own), static_cast<std::uint32_t>(nr), kMachine, {}),
                SECCOMP_RET_KILL_PROCESS)
          << nr;
    }
    EXPECT_EQ(evaluate(release(own), SYS_read, AUDIT_ARCH_I386, {}), SECCOMP_RET_KILL_PROCESS);
  }
}

TEST(OwnFilter, memory_never_becomes_executable) {
  for (const Own own : kOurs) {
    for (const std::uint64_t nr : {SYS_mmap, SYS_mprotect}) {
      EXPECT_TRUE(allows(release(own), nr, {0, 4096, PROT_READ | PROT_WRITE, 0, 0, 0}));
      EXPECT_FALSE(allows(release(own), nr, {0, 4096, PROT_READ | PROT_EXEC, 0, 0, 0}));
      EXPECT_FALSE(allows(release(own), nr, {0, 4096, PROT_EXEC | 1ULL << 32, 0, 0, 0}));
    }
  }
}

TEST(OwnFilter, only_gateway_and_minter_make_sockets_and_only_for_the_internet) {
  for (const Own own :
       {Own::broker, Own::journal, Own::files, Own::tunnel, Own::connection, Own::publisher}) {
    for (const std::uint64_t family : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
      EXPECT_FALSE(allows(release(own), SYS_socket, {family, SOCK_STREAM, 0, 0, 0, 0}));
    }
    EXPECT_FALSE(allows(release(own), SYS_connect, {}));
  }
  for (const Own own : {Own::gateway, Own::minter}) {
    const Filter program = release(own);
    EXPECT_TRUE(allows(program, SYS_socket,
                       {AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 6, 0, 0, 0}));
    EXPECT_TRUE(allows(program, SYS_socket, {AF_INET6, SOCK_DGRAM, 17, 0, 0, 0}));
    EXPECT_TRUE(allows(program, SYS_socket, {AF_NETLINK, SOCK_RAW, 0, 0, 0, 0}));
    for (const Args& args :
         {Args{AF_UNIX, SOCK_STREAM, 0, 0, 0, 0}, Args{AF_INET, SOCK_RAW, 1, 0, 0, 0},
          Args{AF_PACKET, SOCK_RAW, 0, 0, 0, 0}, Args{AF_NETLINK, SOCK_RAW, 12, 0, 0, 0}}) {
      EXPECT_FALSE(allows(program, SYS_socket, args));
    }
  }
}

TEST(OwnFilter, nobody_can_reach_the_minter) {
  for (const std::uint64_t nr : {SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_splice}) {
    EXPECT_FALSE(allows(release(Own::minter), nr, {}));
    EXPECT_TRUE(allows(release(Own::gateway), nr, {}));
  }
}

TEST(OwnFilter, paths_are_quietly_refused_to_those_without_any) {
  for (const Own own : {Own::gateway, Own::broker, Own::tunnel, Own::minter}) {
    for (const std::uint64_t nr : {SYS_openat, SYS_open, SYS_stat, SYS_readlink, SYS_newfstatat}) {
      EXPECT_EQ(evaluate(release(own), static_cast<std::uint32_t>(nr), kMachine, {}),
                SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(EACCES));
    }
    EXPECT_FALSE(allows(release(own), SYS_openat2, {}));
  }
}

// The release filter is strictly narrower than the one for sanitizers, on every number and some
// arguments.
TEST(OwnFilter, sanitizers_only_add) {
  const Args some[] = {{},
                       {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL},
                       {2, 1, 0, 0, 0, 0},
                       {0, 1, 4, 0, 0, 0},
                       {1, 4, 0, 0, 0, 0}};
  for (const Own own : kOurs) {
    const Filter narrow = release(own);
    const Filter wide = filter(own, Arch::x86_64, Build::sanitized);
    int added = 0;
    for (std::uint64_t nr = 0; nr < 600; ++nr) {
      for (const Args& args : some) {
        if (allows(narrow, nr, args)) EXPECT_TRUE(allows(wide, nr, args)) << nr;
        added += allows(wide, nr, args) && !allows(narrow, nr, args);
      }
    }
    EXPECT_GT(added, 0);
    EXPECT_LT(added, 80);
  }
}

class ShutIn : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = std::filesystem::temp_directory_path() / "cerco-shut-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    ASSERT_EQ(::chown(folder_.c_str(), kJournalId, kJournalId), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  // What `act` ends with in a child that has shut itself in as the journal.
  Ended shut(const std::function<int()>& act) {
    return in_child([&] {
      const std::string write[] = {folder_};
      const base::Fd status(::open("/proc/self/status", O_RDONLY));
      const auto done = shut_in(Own::journal, kJournalId, write);
      if (!done) {
        (void)os::write_all(1, done.error().line(), "output");
        return 98;
      }
      char text[8192] = {};
      (void)!::pread(status.get(), text, sizeof text - 1, 0);
      (void)os::write_all(1, text, "output");
      return act();
    });
  }
  std::string folder_;
};

TEST_F(ShutIn, nothing_is_left_but_the_list) {
  const Ended ended = shut([] { return 7; });
  EXPECT_TRUE(ended.exited(7)) << ended.status << ended.output;
  const std::string id = std::to_string(kJournalId);
  for (const std::string& line :
       {fmt::format("Uid:\t{0}\t{0}\t{0}\t{0}", id), "Groups:\t" + std::string(" \n"),
        std::string("CapEff:\t0000000000000000"), std::string("CapPrm:\t0000000000000000"),
        std::string("CapBnd:\t0000000000000000"), std::string("NoNewPrivs:\t1"),
        std::string("Seccomp:\t2")}) {
    EXPECT_TRUE(ended.output.contains(line)) << line << '\n' << ended.output;
  }
}

TEST_F(ShutIn, its_own_folder_can_be_written_and_no_other_path) {
  const std::string inside = folder_ + "/f";
  EXPECT_TRUE(shut([&] {
                return ::open(inside.c_str(), O_WRONLY | O_CREAT, 0600) >= 0 ? 0 : errno;
              }).exited(0));
  EXPECT_TRUE(shut([] { return ::open("/etc/passwd", O_RDONLY) >= 0 ? 0 : errno; }).exited(EACCES));
  EXPECT_TRUE(shut([] {
                return ::open("/tmp/cerco-elsewhere", O_WRONLY | O_CREAT, 0600) >= 0 ? 0 : errno;
              }).exited(EACCES));
  EXPECT_TRUE(shut([&] {
                return ::rename(inside.c_str(), "/tmp/cerco-elsewhere") == 0 ? 0 : 1;
              }).killed_by(SIGSYS) ||
              shut([&] {
                return ::renameat(AT_FDCWD, inside.c_str(), AT_FDCWD, "/tmp/cerco-elsewhere") == 0
                           ? 0
                           : 1;
              }).exited(1));
}

TEST_F(ShutIn, a_call_outside_of_the_list_kills) {
  EXPECT_TRUE(shut([] { return ::socket(AF_INET, SOCK_STREAM, 0) < 0 ? 1 : 0; }).killed_by(SIGSYS));
  EXPECT_TRUE(shut([] { return become_program({"/bin/true"}); }).killed_by(SIGSYS));
  EXPECT_TRUE(shut([] { return ::fork() < 0 ? 1 : 0; }).killed_by(SIGSYS));
}

TEST_F(ShutIn, a_folder_by_descriptor_can_be_kept) {
  const Ended ended = in_child([&] {
    const base::Fd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
    const std::string write[] = {"/proc/self/fd/" + std::to_string(folder.get())};
    if (!shut_in(Own::journal, kJournalId, write)) return 98;
    return ::openat(folder.get(), "g", O_WRONLY | O_CREAT, 0600) >= 0 ? 0 : errno;
  });
  EXPECT_TRUE(ended.exited(0)) << ended.status;
}

TEST_F(ShutIn, what_cannot_be_given_up_is_an_error) {
  const Ended ended = in_child([] {
    const std::string write[] = {"/no/such/folder"};
    const auto done = shut_in(Own::journal, 0, write);
    return done ? 0 : done.error().number;
  });
  EXPECT_TRUE(ended.exited(ENOENT)) << ended.status;
}

TEST_F(ShutIn, each_of_ours_can_shut_itself_in) {
  for (const Own own : {Own::gateway, Own::broker, Own::journal, Own::tunnel, Own::minter}) {
    const Ended ended = in_child([&] {
      if (!shut_in(own, kGatewayId, {})) return 98;
      std::vector<std::string> some(1000, std::string(1000, 'x'));  // memory is still to be had
      return ::write(1, some[3].data(), 3) == 3 ? 0 : 1;
    });
    EXPECT_TRUE(ended.exited(0)) << ended.status;
    EXPECT_EQ(ended.output, "xxx");
  }
}

}  // namespace
}  // namespace confine
