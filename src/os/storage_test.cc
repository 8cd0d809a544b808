// Tests of packets, locks and positioned files.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "os/os.h"

namespace {

TEST(PacketReader, TakesMessagesAndDescriptorsWithoutWaiting) {
  auto ends = os::socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(ends);
  os::PacketReader reader(16, 1);
  EXPECT_EQ(reader.next(ends->second.get()), os::Got::nothing);
  const std::array<int, 1> fds = {0};
  ASSERT_TRUE(os::send_message(ends->first.get(), "hello", fds));
  EXPECT_EQ(reader.next(ends->second.get()), os::Got::message);
  EXPECT_EQ(reader.bytes(), "hello");
  EXPECT_EQ(reader.fds().size(), 1U);
  ends->first.reset();
  EXPECT_EQ(reader.next(ends->second.get()), os::Got::end);
}

// The other end says its last word and goes, with something of ours unread.
std::pair<base::Fd, base::Fd> last_word() {
  auto ends = os::socket_pair(SOCK_SEQPACKET);
  EXPECT_TRUE(ends && os::send_message(ends->second.get(), "never read", {}) &&
              os::send_message(ends->first.get(), "last word", {}));
  ends->first.reset();
  return std::move(*ends);
}

TEST(PacketReader, TheLastWordOfWhoLeftThingsUnreadComes) {
  const auto ends = last_word();
  os::PacketReader reader(16, 1);
  EXPECT_EQ(reader.next(ends.second.get()), os::Got::message);
  EXPECT_EQ(reader.bytes(), "last word");
  EXPECT_EQ(reader.next(ends.second.get()), os::Got::end);
}

TEST(ReceiveMessage, TheLastWordOfWhoLeftThingsUnreadComes) {
  const auto ends = last_word();
  const auto word = os::receive_message(ends.second.get(), 16, 1);
  ASSERT_TRUE(word);
  EXPECT_EQ(word->bytes, "last word");
  const auto end = os::receive_message(ends.second.get(), 16, 1);
  EXPECT_TRUE(end && end->end);
}

TEST(PacketReader, ALongMessageIsCutAndTheNextOneIsWhole) {
  auto ends = os::socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(ends);
  ASSERT_TRUE(os::send_message(ends->first.get(), "more than eight", {}));
  ASSERT_TRUE(os::send_message(ends->first.get(), "whole", {}));
  os::PacketReader reader(8, 0);
  EXPECT_EQ(reader.next(ends->second.get()), os::Got::message);
  EXPECT_TRUE(reader.cut());
  EXPECT_EQ(reader.next(ends->second.get()), os::Got::message);
  EXPECT_FALSE(reader.cut());
  EXPECT_EQ(reader.bytes(), "whole");
}

TEST(PacketReader, UnwantedDescriptorsAreNotTaken) {
  auto ends = os::socket_pair(SOCK_SEQPACKET);
  ASSERT_TRUE(ends);
  const std::array<int, 2> fds = {0, 1};
  ASSERT_TRUE(os::send_message(ends->first.get(), "x", fds));
  os::PacketReader reader(8, 0);
  EXPECT_EQ(reader.next(ends->second.get()), os::Got::message);
  EXPECT_TRUE(reader.fds().empty());
  EXPECT_FALSE(reader.cut());
}

TEST(Storage, ReadsAndWritesAtPositions) {
  std::string folder = "/tmp/os-storage-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto file = os::open(folder + "/a", O_RDWR | O_CREAT, 0600);
  const auto dir = os::open(folder, O_RDONLY | O_DIRECTORY, 0);
  ASSERT_TRUE(file && dir);
  ASSERT_TRUE(os::write_at(file->get(), "abcdef", 0, "a"));
  ASSERT_TRUE(os::truncate(file->get(), 4, "a"));
  EXPECT_EQ(os::read_at(file->get(), 10, 1, "a"), "bcd");
  ASSERT_TRUE(os::sync_data(file->get(), "a"));
  ASSERT_TRUE(os::start_writing(file->get(), "a"));
  const std::string large(100'000, 'x');
  ASSERT_TRUE(os::write_at(file->get(), large, 4, "a"));
  EXPECT_EQ(os::read_at(file->get(), 1 << 20, 4, "a"), large);
  EXPECT_EQ(os::read_at(file->get(), 50'000, 0, "a")->size(), 50'000U);
  ASSERT_TRUE(os::truncate(file->get(), 4, "a"));
  ASSERT_TRUE(os::rename_at(dir->get(), "a", "b"));
  ASSERT_TRUE(os::make_folder_at(dir->get(), "c", 0700));
  ASSERT_TRUE(os::make_folder_at(dir->get(), "c", 0700));
  EXPECT_EQ(os::list_folder(folder), (std::vector<std::string>{"b", "c"}));
  ASSERT_TRUE(os::remove_at(dir->get(), "b"));
  EXPECT_FALSE(os::remove_at(dir->get(), "b"));
  EXPECT_EQ(::system(("rm -r " + folder).c_str()), 0);  // NOLINT(cert-env33-c)
}

TEST(Waiting, SeesAChangeInAFolderAndTimesOutWithoutOne) {
  std::string folder = "/tmp/os-wait-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto watch = os::watch_folder(folder);
  ASSERT_TRUE(watch);
  std::array<pollfd, 1> descriptors = {pollfd{watch->get(), POLLIN, 0}};
  EXPECT_EQ(os::wait_for(descriptors, 0), false);
  ASSERT_TRUE(os::open(folder + "/a", O_RDWR | O_CREAT, 0600));
  EXPECT_EQ(os::wait_for(descriptors, 1000), true);
  EXPECT_EQ(::system(("rm -r " + folder).c_str()), 0);  // NOLINT(cert-env33-c)
}

TEST(FileLock, WaitingForOneThatIsKeptHasAnEnd) {
  const auto first = os::sealed_memfd("lock", "x");
  ASSERT_TRUE(first);
  const auto second = os::open("/proc/self/fd/" + std::to_string(first->get()), O_RDONLY, 0);
  ASSERT_TRUE(second);
  {
    const auto held = os::FileLock::take(first->get(), "x");
    ASSERT_TRUE(held);
    const auto other = os::FileLock::take_within(second->get(), "x", std::chrono::milliseconds(20));
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().line().find("another process keeps it locked"), std::string::npos);
  }
  EXPECT_TRUE(os::FileLock::take_within(second->get(), "x", std::chrono::milliseconds(20)));
}

class Folders : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/cerco-own-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string refusal(const std::string& name) const {
    const auto folder = os::own_folder(path_ + name);
    return folder ? "" : folder.error().line();
  }

  std::string path_;
};

TEST_F(Folders, OurOwnAreMadeAndTakenAgain) {
  EXPECT_EQ(refusal("/keys"), "");
  EXPECT_EQ(refusal("/keys"), "");
  EXPECT_EQ(refusal("/."), "");
  struct stat status = {};
  ASSERT_EQ(::stat((path_ + "/keys").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(Folders, WhatSomebodyElseCouldHavePutThereIsRefused) {
  ASSERT_EQ(::mkdir((path_ + "/open").c_str(), 0700), 0);
  for (const mode_t mode : {0770, 0702, 0777}) {
    ASSERT_EQ(::chmod((path_ + "/open").c_str(), mode), 0);
    EXPECT_NE(refusal("/open").find("others may write"), std::string::npos) << mode;
  }
  std::filesystem::create_directory_symlink(path_ + "/open", path_ + "/link");
  EXPECT_NE(refusal("/link").find("a link or a file"), std::string::npos);
  ASSERT_EQ(::mkfifo((path_ + "/pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal("/pipe").find("a link or a file"), std::string::npos);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  ASSERT_EQ(::chmod((path_ + "/open").c_str(), 0700), 0);
  ASSERT_EQ(::chown((path_ + "/open").c_str(), 4242, 4242), 0);
  EXPECT_NE(refusal("/open").find("belongs to uid 4242"), std::string::npos);
}

}  // namespace
