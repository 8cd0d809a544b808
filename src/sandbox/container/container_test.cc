// A container from start to end.
#include <gtest/gtest.h>

#include "sandbox/container/fixture.h"

namespace sandbox::testing {
namespace {

TEST(Container, RunsACommandAndLeavesNothing) {
  const TempFolder state;
  const plan::Plan plan = whole_plan(state.path());
  const auto before = traces(plan);
  const Outcome outcome =
      run_in_new(plan, "id -u; hostname; echo hello > /tmp/x; cat /tmp/x; exit 7");
  EXPECT_EQ(outcome.output, "1000\nsandbox\nhello\n");
  EXPECT_EQ(outcome.code, 7U);
  EXPECT_EQ(traces(plan), before);
}

}  // namespace
}  // namespace sandbox::testing
