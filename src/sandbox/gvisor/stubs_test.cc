// Who of a sandbox's processes is dying, and for how long.
#include "sandbox/gvisor/stubs.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace sandbox::gvisor {
namespace {

TEST(Stub, IsDyingAsAZombieOrWithAPendingKill) {
  const std::string begin = "Name:\texe\nState:\tt (tracing stop)\nTgid:\t7\n";
  EXPECT_FALSE(is_dying(begin + "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"));
  EXPECT_FALSE(is_dying(begin + "SigPnd:\t0000000000000080\nShdPnd:\t0000000000014200\n"));
  EXPECT_TRUE(is_dying(begin + "SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n"));
  EXPECT_TRUE(is_dying(begin + "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n"));
  EXPECT_TRUE(is_dying("Name:\texe\nState:\tZ (zombie)\nTgid:\t7\n"));
  EXPECT_FALSE(is_dying("Name:\tZ\nState:\tS (sleeping)\n"));
  EXPECT_FALSE(is_dying(""));
}

TEST(Stub, IsToldOfAtTheSecondLookAndNeverWhenItWasReaped) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  siginfo_t told = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(dead), &told, WEXITED | WNOWAIT), 0);
  const std::string processes = std::to_string(::getpid()) + "\n" + std::to_string(dead) + "\n";
  Stubs stubs;
  EXPECT_EQ(stubs.look(processes, "/proc"), 0U);
  EXPECT_EQ(stubs.look(processes, "/proc"), static_cast<std::uint64_t>(dead));
  EXPECT_EQ(stubs.look(processes, "/proc"), static_cast<std::uint64_t>(dead));
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  EXPECT_EQ(stubs.look(processes, "/proc"), 0U);
}

TEST(Stub, OneThatWasReapedBetweenTwoLooksIsForgotten) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  siginfo_t told = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(dead), &told, WEXITED | WNOWAIT), 0);
  const std::string processes = std::to_string(dead);
  Stubs stubs;
  EXPECT_EQ(stubs.look(processes, "/proc"), 0U);
  EXPECT_EQ(stubs.look("", "/proc"), 0U);
  EXPECT_EQ(stubs.look(processes, "/proc"), 0U);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
}

}  // namespace
}  // namespace sandbox::gvisor
