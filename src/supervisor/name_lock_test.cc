// One living run a name.
#include "supervisor/name_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "os/os.h"

namespace {

using supervisor::NameLock;

class NameLocks : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/cerco-name-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    state_ = name;
    ASSERT_TRUE(os::make_folders(state_ + "/leases", 0700));
  }
  void TearDown() override { std::filesystem::remove_all(state_); }
  [[nodiscard]] base::Result<NameLock> take() const { return NameLock::take(state_, "job"); }
  [[nodiscard]] std::string file() const { return state_ + "/leases/name-job"; }

  std::string state_;
};

TEST_F(NameLocks, OneThatWasRefusedTakesNothingFromTheLivingOne) {
  auto first = take();
  ASSERT_TRUE(first) << first.error().line();
  for (int i = 0; i < 3; ++i) {
    const auto other = take();
    ASSERT_FALSE(other) << i;
    EXPECT_EQ(other.error().kind, base::Kind::bad_input);
    EXPECT_NE(other.error().line().find("a run of that name is alive"), std::string::npos);
    EXPECT_TRUE(std::filesystem::exists(file())) << i;
  }
  first->release();
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_TRUE(take());
}

TEST_F(NameLocks, AFileThatWasLeftIsTakenOver) {
  const auto left = os::open(file(), O_RDWR | O_CREAT, 0600);
  ASSERT_TRUE(left);
  EXPECT_TRUE(take());
}

TEST_F(NameLocks, LinksAndPipesAreNoNames) {
  std::filesystem::create_symlink(state_ + "/elsewhere", file());
  EXPECT_FALSE(take());
  EXPECT_FALSE(std::filesystem::exists(state_ + "/elsewhere"));
  std::filesystem::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_FALSE(take());
}

}  // namespace
