// What is kept for the host, and how soon it is looked at again.
#include "supervisor/host_room.h"

#include <gtest/gtest.h>

namespace {

using std::chrono::milliseconds;
using supervisor::HostRoom;

constexpr std::uint64_t kMiB = 1ULL << 20;

TEST(HostRoom, TheLastTwentiethIsTheHosts) {
  EXPECT_FALSE(supervisor::host_is_full({1000 * kMiB, 50 * kMiB}));
  EXPECT_TRUE(supervisor::host_is_full({1000 * kMiB, (50 * kMiB) - 1}));
  EXPECT_TRUE(supervisor::host_is_full({1000 * kMiB, 0}));
}

TEST(HostRoom, TheNearerTheFloorTheSoonerIsTheNextLook) {
  const std::uint64_t total = 1000 * kMiB;
  EXPECT_EQ(supervisor::look_again_after({total << 10, total << 9}), milliseconds(500));
  EXPECT_EQ(supervisor::look_again_after({total, 850 * kMiB}), milliseconds(200));
  EXPECT_EQ(supervisor::look_again_after({total, 90 * kMiB}), milliseconds(10));
  for (const std::uint64_t free : {60 * kMiB, 50 * kMiB, 0 * kMiB}) {
    EXPECT_EQ(supervisor::look_again_after({total, free}), milliseconds(5)) << free;
  }
}

// Whatever is left, what can be written until the next look does not reach below the floor by more
// than one shortest look's worth.
TEST(HostRoom, NothingReachesTheFloorBetweenTwoLooks) {
  for (std::uint64_t free = 50 * kMiB; free < 1000 * kMiB; free += 7 * kMiB) {
    const auto wait = supervisor::look_again_after({1000 * kMiB, free});
    const auto written = static_cast<std::uint64_t>(wait.count()) * 4 * kMiB;
    EXPECT_GE(free + 20 * kMiB, written + 50 * kMiB) << free;
  }
}

}  // namespace
