// Words that no cerco-init of ours says are told from those that it does.
#include "supervisor/believable.h"

#include <gtest/gtest.h>

#include "sandbox/sandbox.h"

namespace {

using frame::Ended;
using frame::NotStarted;
using supervisor::can_be;

TEST(Believable, EndsAreThoseOfTheKernel) {
  EXPECT_TRUE(can_be(Ended{1, false, 0, 0}));
  EXPECT_TRUE(can_be(Ended{1, false, 255, 12}));
  EXPECT_TRUE(can_be(Ended{1, true, 64, sandbox::kMostCounted}));
  // Whose last byte is 0, so that a shell would take it for success.
  EXPECT_FALSE(can_be(Ended{1, false, 256, 0}));
  EXPECT_FALSE(can_be(Ended{1, true, 0, 0}));
  EXPECT_FALSE(can_be(Ended{1, true, 65, 0}));
}

TEST(Believable, TimesFitIntoAJournal) {
  EXPECT_FALSE(can_be(Ended{1, false, 0, sandbox::kMostCounted + 1}));
}

TEST(Believable, AStepIsAWordAndAnErrorANumber) {
  EXPECT_TRUE(can_be(NotStarted{1, "execve", 2}));
  EXPECT_FALSE(can_be(NotStarted{1, "", 2}));
  EXPECT_FALSE(can_be(NotStarted{1, "ex\nve", 2}));
  EXPECT_FALSE(can_be(NotStarted{1, std::string(65, 'x'), 2}));
  EXPECT_FALSE(can_be(NotStarted{1, "execve", 0x80000000U}));
}

}  // namespace
