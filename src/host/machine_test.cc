// What the dynamic linker's list says, and images of folders.
#include "host/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "os/os.h"

namespace {

TEST(Libraries, AreThePathsOfTheList) {
  EXPECT_EQ(
      host::listed_libraries("\tlinux-vdso.so.1 (0x00007ffc)\n"
                             "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n"
                             "\t/lib64/ld-linux-x86-64.so.2 (0x00007f00)\n"
                             "\tlibgone.so => not found\n"
                             "statically linked\n"),
      (std::vector<std::string>{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}));
}

class ImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::may_access("/usr/bin/mkfs.erofs", os::Access::read)) GTEST_SKIP() << "no mkfs.erofs";
    std::string name = "/tmp/cerco-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directories(folder_ + "/base/usr");
    std::ofstream(folder_ + "/base/usr/one") << "1";
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(ImageTest, IsMadeOnceForEachStateOfTheFolder) {
  const auto first = host::image_of_folder(folder_ + "/base", folder_ + "/state");
  ASSERT_TRUE(first) << first.error().line();
  const auto again = host::image_of_folder(folder_ + "/base", folder_ + "/state");
  ASSERT_TRUE(again);
  EXPECT_EQ(*first, *again);
  std::ofstream(folder_ + "/base/usr/one") << "22";
  const auto other = host::image_of_folder(folder_ + "/base", folder_ + "/state");
  ASSERT_TRUE(other);
  EXPECT_NE(*first, *other);
}

// A guest whose kernel was taken over reads its disk, not the files' modes.
TEST_F(ImageTest, WhatIsClosedToOthersStaysOut) {
  namespace fs = std::filesystem;
  const std::string base = folder_ + "/base/usr";
  const auto write = [&](const std::string& name, const std::string& text, unsigned mode) {
    std::ofstream(base + "/" + name) << text;
    fs::permissions(base + "/" + name, static_cast<fs::perms>(mode));
  };
  fs::create_directory(base + "/closed");
  write("open", "text-for-everyone", 0644);
  write("key", "text-of-the-owner", 0600);
  write("group", "text-of-the-group", 0640);
  write("closed/open", "text-in-a-closed-folder", 0644);
  write("program", "text-that-runs", 0711);
  fs::permissions(base + "/closed", fs::perms::owner_all);
  const auto made = host::image_of_folder(folder_ + "/base", folder_ + "/state");
  ASSERT_TRUE(made) << made.error().line();
  const auto bytes = os::read_file(*made, 16U << 20);
  ASSERT_TRUE(bytes) << bytes.error().line();
  EXPECT_TRUE(bytes->contains("text-for-everyone"));
  EXPECT_TRUE(bytes->contains("text-that-runs"));
  EXPECT_FALSE(bytes->contains("text-of-the-owner"));
  EXPECT_FALSE(bytes->contains("text-of-the-group"));
  EXPECT_FALSE(bytes->contains("text-in-a-closed-folder"));
}

TEST_F(ImageTest, AFolderWithoutUsrIsNoBase) {
  const auto made = host::image_of_folder(folder_, folder_ + "/state");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, base::Kind::bad_input);
}

TEST(Kvm, TheProbeAnswersWithinItsBudget) {
  // Whatever this host is: an answer, and a counter that runs between 0.1 and 10 GHz.
  (void)host::probe_kvm();
  const auto khz = host::measure_tsc_khz();
  EXPECT_TRUE(khz == 0 || (khz > 100'000 && khz < 10'000'000)) << khz;
}

}  // namespace
