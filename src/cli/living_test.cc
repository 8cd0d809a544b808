// Names of signals as people write them.
#include "cli/living.h"

#include <gtest/gtest.h>

#include <csignal>

namespace {

TEST(SignalNumber, NamesAndNumbers) {
  for (const char* text : {"TERM", "SIGTERM", "term", "15"}) {
    EXPECT_EQ(cli::signal_number(text).value_or(0), SIGTERM) << text;
  }
  EXPECT_EQ(cli::signal_number("KILL").value_or(0), SIGKILL);
  EXPECT_EQ(cli::signal_number("USR1").value_or(0), SIGUSR1);
  for (const char* text : {"", "0", "65", "-9", "TERMS", "SIG", "9x"}) {
    const auto number = cli::signal_number(text);
    ASSERT_FALSE(number) << text;
    EXPECT_EQ(number.error().kind, base::Kind::bad_input);
  }
}

}  // namespace
