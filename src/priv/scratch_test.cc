// Tests of scratch layers: what the host keeps closed stays closed, and nothing of it changes.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "priv/priv.h"
#include "priv/testing.h"

namespace {

using priv::testing::badge;
using priv::testing::inside;
using priv::testing::TempFolder;

constexpr std::uint32_t kFirst = priv::kFirstLease + 70 * priv::kLeaseSize;
constexpr std::uint32_t kWorkload = 1000;

// A base with what a host has: open and closed files of root's, and those of others.
class Scratch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "takes root, to mount";
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    for (const char* folder : {"base", "base/bin", "base/closed", "lower", "seen", "nothing"}) {
      ASSERT_EQ(::mkdir(at(folder).c_str(), 0755), 0);
    }
    file("base/bin/tool", 0, 0, 0755);
    file("base/open", 0, 0, 0644);
    file("base/secret", 0, 0, 0600);
    file("base/shadow", 0, 42, 0640);
    file("base/runs-only", 0, 0, 0711);
    file("base/of-1000", 1000, 1000, 0600);
    file("base/of-nobody", 65534, 65534, 0600);
    file("base/closed/file", 0, 0, 0644);
    ASSERT_EQ(::chmod(at("base/closed").c_str(), 0700), 0);
    map_ = priv::make_id_map(badge(), kFirst, kWorkload).value();
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return folder_.path() + "/" + name;
  }
  void file(const std::string& name, uid_t uid, gid_t gid, mode_t mode) const {
    std::ofstream(at(name)) << name.substr(name.rfind('/') + 1);
    ASSERT_EQ(::chmod(at(name).c_str(), mode), 0);
    ASSERT_EQ(::chown(at(name).c_str(), uid, gid), 0);
  }

  void fresh(const std::string& name, uid_t owner) const {
    std::filesystem::remove_all(at(name));
    ASSERT_EQ(::mkdir(at(name).c_str(), 0755), 0);
    ASSERT_EQ(::chown(at(name).c_str(), owner, owner), 0);
  }

  // What the workload answers that `script` is run by, in the layered base.
  std::string run(priv::Reader reader, const std::string& script) {
    fresh("work", 0);
    fresh("over", kFirst + kWorkload);
    return inside(CLONE_NEWNS, [&](const priv::Inside& in) -> base::Result<std::string> {
      TRY(priv::make_private(badge(), in));
      if (::prctl(PR_SET_SECUREBITS, secure_bits_) != 0) return base::system_error("prctl");
      const base::Fd top = TRY(os::open(folder_.path(), O_PATH | O_DIRECTORY, 0));
      const auto attach = [&](int mount, const char* name) -> base::Status {
        const base::Fd place = TRY(os::openat2(top.get(), name, O_PATH, 0, 0));
        return priv::attach(badge(), in, mount, place.get());
      };
      const base::Fd base = TRY(os::open(at("base"), O_PATH, 0));
      const base::Fd lower = TRY(priv::clone_tree(badge(), in, base.get(), "", priv::Depth::one));
      TRY(priv::map_ids(badge(), in, lower.get(), map_.get()));
      TRY(attach(lower.get(), "lower"));
      const base::Fd seen = TRY(priv::see_as(badge(), in, top.get(), "lower", "nothing", reader));
      TRY(attach(seen.get(), "seen"));
      const base::Fd whole = TRY(priv::lay_over(badge(), in, top.get(), "seen", "over", "work"));
      TRY(attach(whole.get(), "base"));
      return as_workload(script);
    });
  }

  base::Result<std::string> as_workload(const std::string& script) const {
    auto [reads, writes] = TRY(os::pipe());
    const pid_t pid = ::fork();
    if (pid == 0) {
      const uid_t uid = kFirst + kWorkload;
      if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
          ::setresuid(uid, uid, uid) != 0 || ::chdir(at("base").c_str()) != 0) {
        ::_exit(1);
      }
      ::dup2(writes.get(), 1);
      ::dup2(writes.get(), 2);
      ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
      ::_exit(1);
    }
    writes.reset();
    std::string said = TRY(os::read_all(reads.get(), 65536, "script"));
    ::waitpid(pid, nullptr, 0);
    return said;
  }

  TempFolder folder_;
  base::Fd map_;
  unsigned long secure_bits_ = 0;
};

TEST_F(Scratch, WhatIsOpenCanBeReadAndChangedAndTheBaseStays) {
  EXPECT_EQ(run(priv::Reader::nobody,
                "echo more >>bin/tool; rm open; echo new >open; mkdir bin/made; mv bin bin2; "
                "cat bin2/tool open; ls -d bin2/made"),
            "toolmore\nnew\nbin2/made\n");
  EXPECT_EQ(os::read_file(at("base/bin/tool"), 64).value(), "tool");
  EXPECT_EQ(os::read_file(at("base/open"), 64).value(), "open");
  EXPECT_NE(::access(at("base/bin2").c_str(), F_OK), 0);
  EXPECT_NE(::access(at("over/bin2").c_str(), F_OK), -1);
}

// Each way to the text of a file that the host's root keeps to itself.
TEST_F(Scratch, WhatIsClosedStaysClosedToItsSeemingOwner) {
  const char* const tries[] = {
      "cat secret",
      "chmod 644 secret; cat secret",
      "cp secret /dev/stdout",
      "ln secret other; cat other",
      "mv secret other; cat other",
      "echo >>secret; cat secret",
      "head -c 3 runs-only",
  };
  for (const char* script : tries) {
    const std::string name = std::string(script).contains("runs-only") ? "run" : "secret";
    const std::string said =
        run(priv::Reader::nobody, "echo begun; { " + std::string(script) + "; } 2>/dev/null");
    EXPECT_TRUE(said.starts_with("begun\n")) << said;
    EXPECT_FALSE(said.contains(name)) << script;
  }
  const std::string others =
      "cat shadow of-1000 of-nobody closed/file; ls closed; "
      "chmod 755 closed; ls closed; mv closed opened; ls opened";
  EXPECT_EQ(run(priv::Reader::nobody, "echo begun; { " + others + "; } 2>/dev/null"), "begun\n");
  // Positive control: read with root's eyes, who seems to own it reads it.
  EXPECT_EQ(run(priv::Reader::root, "cat secret shadow; ls closed"), "secretshadowfile\n");
}

// With these secure bits the kernel takes no capability when the id goes, so nothing would be
// closed.
TEST_F(Scratch, WhoWouldKeepItsCapabilitiesIsRefused) {
  secure_bits_ = SECBIT_NO_SETUID_FIXUP;
  EXPECT_EQ(run(priv::Reader::nobody, "cat secret"),
            "setfsuid to nobody: EPERM (Operation not permitted)");
}

TEST_F(Scratch, EveryChangeCountsOnTheDiskOfTheLayer) {
  EXPECT_EQ(run(priv::Reader::nobody, "head -c 1000000 /dev/zero >bin/big; cp open copy"), "");
  struct stat status = {};
  EXPECT_EQ(::stat(at("over/bin/big").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 1000000);
  EXPECT_EQ(status.st_uid, kFirst + kWorkload);
  EXPECT_NE(::access(at("base/bin/big").c_str(), F_OK), 0);
}

TEST(IdMap, IdsOfTheHostItselfAreRefused) {
  EXPECT_FALSE(priv::make_id_map(badge(), 0, kWorkload));
  EXPECT_FALSE(priv::make_id_map(badge(), priv::kFirstLease - 1, kWorkload));
  EXPECT_FALSE(priv::make_id_map(badge(), kFirst, priv::kLeaseSize));
  EXPECT_FALSE(priv::make_id_map(badge(), kFirst, 0));
}

TEST(Reserve, AllBlocksOfAFileAreTakenAndItsTextStays) {
  const TempFolder folder;
  const base::Fd file = os::open(folder.path() + "/image", O_RDWR | O_CREAT, 0600).value();
  ASSERT_EQ(::pwrite(file.get(), "text", 4, 1 << 20), 4);
  ASSERT_EQ(::ftruncate(file.get(), 8 << 20), 0);
  struct stat status = {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
  const auto done = priv::reserve_blocks(badge(), file.get());
  ASSERT_TRUE(done) << done.error().line();
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, 8 << 20);
  EXPECT_EQ(status.st_size, 8 << 20);
  EXPECT_EQ(os::read_at(file.get(), 4, 1 << 20, "image").value(), "text");
}

}  // namespace
