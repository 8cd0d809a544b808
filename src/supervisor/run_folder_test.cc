// The folder of a living run: who lives, who was lost, and who may speak to it.
#include "supervisor/run_folder.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "os/os.h"

namespace supervisor {
namespace {

constexpr const char* kRun = "abcdefgh2345";

class RunFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/cerco-run-folder-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    state_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(state_); }
  [[nodiscard]] std::string at(const std::string& name) const {
    return state_ + "/runs/" + kRun + "/" + name;
  }
  static LiveRun live() {
    LiveRun run;
    run.run = kRun;
    run.name = "n";
    run.kind = RunKind::session;
    run.argv = {"a", "b"};
    return run;
  }

  std::string state_;
};

TEST_F(RunFolderTest, a_run_lives_as_long_as_its_folder_is_held) {
  EXPECT_EQ(look_at_run(state_, kRun).error().kind, base::Kind::not_found);
  auto folder = RunFolder::make(state_, live());
  ASSERT_TRUE(folder) << folder.error().line();
  const auto found = look_at_run(state_, kRun);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->alive);
  EXPECT_EQ(found->run.name, "n");
  EXPECT_EQ(found->run.argv, live().argv);
  EXPECT_FALSE(settle_lost_run(state_, kRun, "v").value_or(true)) << "it lives";
  folder->close();
  EXPECT_EQ(look_at_run(state_, kRun).error().kind, base::Kind::not_found);
  EXPECT_FALSE(std::filesystem::exists(state_ + "/runs/" + kRun)) << "nothing was in it";
}

TEST_F(RunFolderTest, a_run_that_was_lost_gets_its_report) {
  {
    const auto folder = RunFolder::make(state_, live());  // goes without close(), as by SIGKILL
    ASSERT_TRUE(folder);
    ASSERT_TRUE(folder->listen());
  }
  const auto found = look_at_run(state_, kRun);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->alive);
  EXPECT_EQ(connect_to_run(state_, kRun).error().kind, base::Kind::not_found);
  EXPECT_TRUE(settle_lost_run(state_, kRun, "v").value_or(false));
  const std::string report = os::read_file(at(kReportFile), 4096).value_or("");
  EXPECT_NE(report.find(R"("kind":"killed")"), std::string::npos) << report;
  EXPECT_NE(report.find(R"("name":"n")"), std::string::npos) << report;
  EXPECT_NE(report.find(R"("by":"host")"), std::string::npos) << report;
  EXPECT_FALSE(std::filesystem::exists(at(kLiveFile)));
  EXPECT_FALSE(std::filesystem::exists(at(kSocketFile)));
  EXPECT_FALSE(settle_lost_run(state_, kRun, "v").value_or(true)) << "once";
}

TEST_F(RunFolderTest, a_report_that_is_there_stays) {
  {
    const auto folder = RunFolder::make(state_, live());
    ASSERT_TRUE(folder && folder->write_report("true\n"));
  }
  EXPECT_TRUE(settle_lost_run(state_, kRun, "v").value_or(false));
  EXPECT_EQ(os::read_file(at(kReportFile), 64).value_or(""), "true\n");
}

TEST_F(RunFolderTest, no_run_is_made_twice) {
  const auto folder = RunFolder::make(state_, live());
  ASSERT_TRUE(folder);
  std::filesystem::create_symlink("/etc/passwd", at("live.new"));
  EXPECT_FALSE(RunFolder::make(state_, live())) << "whatever lies there is not written through";
}

TEST_F(RunFolderTest, the_socket_is_its_owners) {
  const auto folder = RunFolder::make(state_, live());
  ASSERT_TRUE(folder);
  const auto listener = folder->listen();
  ASSERT_TRUE(listener) << listener.error().line();
  struct stat status = {};
  ASSERT_EQ(::lstat(at(kSocketFile).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  ASSERT_EQ(::lstat((state_ + "/runs/" + kRun).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  const auto channel = connect_to_run(state_, kRun);
  ASSERT_TRUE(channel) << channel.error().line();
  ASSERT_TRUE(ipc::send_value(*channel, FromClient(EndRun{}), {}));
  const base::Fd other(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(other.open());
}

TEST_F(RunFolderTest, what_is_no_file_is_no_run) {
  const auto folder = RunFolder::make(state_, live());
  ASSERT_TRUE(folder);
  std::filesystem::remove(at(kLiveFile));
  std::filesystem::create_symlink("/etc/passwd", at(kLiveFile));
  EXPECT_FALSE(look_at_run(state_, kRun));
  std::filesystem::remove(at(kLiveFile));
  ASSERT_EQ(::mkfifo(at(kLiveFile).c_str(), 0600), 0);
  EXPECT_FALSE(look_at_run(state_, kRun)) << "and nobody waits for it";
}

}  // namespace
}  // namespace supervisor
