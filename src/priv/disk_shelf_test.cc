// Tests of the shelf: one spare goes to one taker, and nothing but a whole image of ours is taken.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "priv/priv.h"
#include "priv/testing.h"

namespace {

using priv::DiskSize;
using priv::testing::badge;
using priv::testing::TempFolder;

constexpr DiskSize kSize = {32 << 20, 1000};

std::string magic_of(int image) {
  return os::read_at(image, 2, 1024 + 0x38, "image").value();
}

std::vector<std::string> names(const std::string& state) {
  auto found = os::list_folder(state + "/patterns").value();
  std::ranges::sort(found);
  return found;
}

ino_t inode_of(int fd) {
  struct stat status = {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

// A shelf with a pattern and a spare, whose path it returns.
std::string filled(const std::string& state) {
  const auto done = priv::fill_shelf(badge(), state, kSize);
  EXPECT_TRUE(done) << done.error().line();
  const auto found = names(state);
  EXPECT_EQ(found.size(), 2U);
  EXPECT_TRUE(found.back().ends_with(".spare")) << found.back();
  return state + "/patterns/" + found.back();
}

TEST(Shelf, ASpareIsTakenOnceAndThePatternStays) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  const ino_t lay_ready = inode_of(os::open(spare, O_RDONLY, 0).value().get());
  const auto first = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(first) << first.error().line();
  EXPECT_EQ(inode_of(first->get()), lay_ready);
  EXPECT_EQ(names(state.path()).size(), 1U);
  const auto second = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(second) << second.error().line();
  EXPECT_NE(inode_of(second->get()), lay_ready);
  for (const auto* image : {&first, &second}) {
    EXPECT_EQ(magic_of((*image)->get()), "\x53\xef");
    struct stat status = {};
    ASSERT_EQ(::fstat((*image)->get(), &status), 0);
    EXPECT_EQ(status.st_nlink, 0U);
    EXPECT_EQ(status.st_size, 32 << 20);
    EXPECT_LT(status.st_blocks * 512, 2 << 20);  // sparse
  }
}

TEST(Shelf, FillingAFullShelfChangesNothing) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  const ino_t before = inode_of(os::open(spare, O_RDONLY, 0).value().get());
  EXPECT_EQ(filled(state.path()), spare);
  EXPECT_EQ(inode_of(os::open(spare, O_RDONLY, 0).value().get()), before);
}

TEST(Shelf, ASpareThatSomebodyHoldsIsLeftToThem) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  const base::Fd held = os::open(spare, O_RDWR, 0).value();
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  const auto image = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(image);
  EXPECT_NE(inode_of(image->get()), inode_of(held.get()));
  EXPECT_EQ(names(state.path()).size(), 2U);
}

TEST(Shelf, ASpareFromBeforeTheHostStartedLastIsNeverTaken) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  const std::size_t boot = spare.size() - 36 - std::string(".spare").size();
  const std::string old = std::string(spare).replace(boot, 4, "0000");
  ASSERT_NE(old, spare);
  ASSERT_EQ(::rename(spare.c_str(), old.c_str()), 0);
  const ino_t before = inode_of(os::open(old, O_RDONLY, 0).value().get());
  const auto image = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(image);
  EXPECT_NE(inode_of(image->get()), before);
  EXPECT_EQ(filled(state.path()), spare);
}

// Opened by two, taken by one: the second gets the lock, but of a file that has no name any more.
TEST(Shelf, ASpareThatWasTakenMeanwhileIsNotTakenAgain) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  ASSERT_EQ(::link(spare.c_str(), (state.path() + "/second").c_str()), 0);
  const auto image = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(image);
  EXPECT_NE(inode_of(image->get()), inode_of(os::open(spare, O_RDONLY, 0).value().get()));
}

TEST(Shelf, WhatIsNoImageOfThatSizeIsNotTaken) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  ASSERT_EQ(::truncate(spare.c_str(), 4096), 0);
  const auto image = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(image);
  EXPECT_EQ(magic_of(image->get()), "\x53\xef");
  const std::string elsewhere = state.path() + "/elsewhere";
  ASSERT_TRUE(os::open(elsewhere, O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(::truncate(elsewhere.c_str(), 32 << 20), 0);
  ASSERT_EQ(::symlink(elsewhere.c_str(), spare.c_str()), 0);
  const auto other = priv::take_image(badge(), state.path(), kSize);
  ASSERT_TRUE(other);
  EXPECT_EQ(magic_of(other->get()), "\x53\xef");
}

// open(2) of a pipe waits for whoever opens its other end.
TEST(Shelf, APipeInThePlaceOfAPatternIsRefusedAtOnce) {
  const TempFolder state;
  const std::string spare = filled(state.path());
  const std::string pattern = spare.substr(0, spare.find(".ext4") + 5);
  for (const std::string& path : {spare, pattern}) {
    ASSERT_EQ(::unlink(path.c_str()), 0);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  }
  EXPECT_FALSE(priv::take_image(badge(), state.path(), kSize));
}

TEST(Shelf, ALinkInThePlaceOfTheFolderIsRefused) {
  const TempFolder state;
  const TempFolder elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (state.path() + "/patterns").c_str()), 0);
  EXPECT_FALSE(priv::fill_shelf(badge(), state.path(), kSize));
  EXPECT_FALSE(priv::take_image(badge(), state.path(), kSize));
  EXPECT_EQ(os::list_folder(elsewhere.path()), std::vector<std::string>());
}

}  // namespace
