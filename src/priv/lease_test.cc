// Leases, groups and disks.
#include "priv/lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "priv/testing.h"

namespace {

using priv::testing::badge;
using priv::testing::TempFolder;

TEST(Lease, RangesAreApartAndComeBack) {
  const TempFolder state;
  auto first = priv::take_lease(badge(), state.path());
  auto second = priv::take_lease(badge(), state.path());
  ASSERT_TRUE(first);
  ASSERT_TRUE(second);
  EXPECT_NE(first->first(), second->first());
  for (const auto* lease : {&*first, &*second}) {
    EXPECT_GE(lease->first(), priv::kFirstLease);
    EXPECT_EQ((lease->first() - priv::kFirstLease) % priv::kLeaseSize, 0U);
    EXPECT_LT(lease->first(), std::uint32_t{1} << 31);
  }
  const std::uint32_t freed = first->first();
  first->release();
  EXPECT_FALSE(first->held());
  auto third = priv::take_lease(badge(), state.path());
  ASSERT_TRUE(third);
  EXPECT_EQ(third->first(), freed);
  second->release();
  third->release();
  EXPECT_EQ(os::list_folder(state.path() + "/leases"), std::vector<std::string>());
}

TEST(Lease, OneThatWasLeftIsCollectedAndALivingOneIsNot) {
  const TempFolder state;
  auto living = priv::take_lease(badge(), state.path());
  auto left = priv::take_lease(badge(), state.path());
  ASSERT_TRUE(living);
  ASSERT_TRUE(left);
  left->abandon();  // as if its owner had been killed
  EXPECT_EQ(priv::collect_leases(badge(), state.path()), 1U);
  EXPECT_EQ(priv::collect_leases(badge(), state.path()), 0U);
  EXPECT_TRUE(living->held());
}

// A range stays closed while what its run left cannot be emptied.
TEST(Lease, ARangeIsNotUsedAgainBeforeItsGroupsAreEmpty) {
  const TempFolder state;
  auto left = priv::take_lease(badge(), state.path());
  ASSERT_TRUE(left);
  const std::uint32_t closed = left->first();
  ASSERT_TRUE(left->note_groups({"/tmp/not-a-group-of-ours"}));
  left->abandon();
  auto next = priv::take_lease(badge(), state.path());
  ASSERT_TRUE(next);
  EXPECT_NE(next->first(), closed);
  EXPECT_FALSE(priv::collect_leases(badge(), state.path()));
}

TEST(Lease, ALinkInThePlaceOfTheFolderIsRefusedAndNothingIsCollectedThere) {
  const TempFolder state;
  const TempFolder elsewhere;
  const std::string kept = elsewhere.path() + "/kept";
  ASSERT_TRUE(os::open(kept, O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (state.path() + "/leases").c_str()), 0);
  EXPECT_FALSE(priv::collect_leases(badge(), state.path()));
  EXPECT_FALSE(priv::take_lease(badge(), state.path()));
  EXPECT_EQ(os::list_folder(elsewhere.path()), std::vector<std::string>{"kept"});
}

TEST(Groups, NamesThatLeadElsewhereAreRefused) {
  EXPECT_FALSE(priv::make_groups(badge(), {}, "../x"));
  EXPECT_FALSE(priv::make_groups(badge(), {}, ""));
  EXPECT_FALSE(priv::remove_abandoned_group("/sys/fs/cgroup/memory"));
  EXPECT_TRUE(priv::remove_abandoned_group("/sys/fs/cgroup/cerco-nobody"));
}

TEST(Disk, IsFreshEachTimeAndThePatternIsNeverWritten) {
  const TempFolder state;
  const priv::DiskSize size = {32 << 20, 1000};
  const auto pattern = [&] { return os::list_folder(state.path() + "/patterns").value(); };
  for (int run = 0; run < 2; ++run) {
    const auto disk = priv::make_disk(badge(), state.path(), size, priv::Blocks::as_written);
    ASSERT_TRUE(disk) << disk.error().line();
    ASSERT_EQ(pattern().size(), 1U);
    EXPECT_TRUE(priv::make_disk_folder(badge(), disk->get(), "workspace", 0755, 4242));
    EXPECT_FALSE(priv::make_disk_folder(badge(), disk->get(), "workspace", 0755, 4242));
    struct stat status = {};
    ASSERT_EQ(::fstatat(disk->get(), "workspace", &status, 0), 0);
    EXPECT_EQ(status.st_uid, 4242U);
    const auto use = priv::disk_use(disk->get());
    ASSERT_TRUE(use);
    EXPECT_FALSE(use->full);
    EXPECT_LT(use->used, 1U << 20);
    EXPECT_TRUE(priv::discard_disk(badge(), disk->get()));
  }
  const std::string path = state.path() + "/patterns/" + pattern()[0];
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 32 << 20);
  EXPECT_LT(status.st_blocks * 512, 2 << 20);  // sparse
}

TEST(Disk, ASmallOneHasFewerInodes) {
  const TempFolder state;
  const auto disk =
      priv::make_disk(badge(), state.path(), {1 << 20, 400'000}, priv::Blocks::as_written);
  EXPECT_TRUE(disk) << (disk ? "" : disk.error().line());
}

TEST(Disk, WhatIsNoDiskOfOursIsNotDiscarded) {
  const base::Fd root = os::open("/", O_PATH, 0).value();
  const auto discarded = priv::discard_disk(badge(), root.get());
  ASSERT_FALSE(discarded);
  EXPECT_EQ(discarded.error().number, EPERM);
}

TEST(Attributes, AreFoundAndMalformedOnesAreNot) {
  priv::NetlinkMessages messages;
  messages.attribute(7, "ab");
  messages.number(9, 5);
  const std::string row = messages.bytes();
  EXPECT_EQ(priv::attribute_in(row, 7), "ab");
  EXPECT_EQ(priv::attribute_in(row, 9), std::string_view("\0\0\0\5", 4));
  EXPECT_EQ(priv::attribute_in(row, 8), "");
  for (std::size_t cut = 0; cut < row.size(); ++cut) {
    (void)priv::attribute_in(std::string_view(row).substr(0, cut), 9);
  }
  EXPECT_EQ(priv::attribute_in(std::string_view("\0\0\7\0", 4), 7), "");  // shorter than its head
  EXPECT_EQ(priv::attribute_in(std::string_view("\xFF\xFF\7\0", 4), 7), "");  // longer than the row
}

}  // namespace
