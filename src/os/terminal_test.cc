// Raw modes, and the old ones back: by restore(), and whatever ends the process.
#include "os/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

namespace os {
namespace {

class RawTerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    int near = -1;
    int far = -1;
    ASSERT_EQ(::openpty(&near, &far, nullptr, nullptr, nullptr), 0);
    near_ = base::Fd(near);
    far_ = base::Fd(far);
  }
  [[nodiscard]] bool is_raw() const {
    termios modes = {};
    return ::tcgetattr(far_.get(), &modes) == 0 && (modes.c_lflag & (ICANON | ECHO | ISIG)) == 0 &&
           (modes.c_oflag & OPOST) == 0;
  }
  base::Fd near_;
  base::Fd far_;
};

TEST_F(RawTerminalTest, LastsUntilItIsRestored) {
  EXPECT_FALSE(is_raw());
  auto raw = RawTerminal::make(far_.get());
  ASSERT_TRUE(raw);
  EXPECT_TRUE(is_raw());
  raw->restore();
  EXPECT_FALSE(is_raw());
  {
    const auto again = RawTerminal::make(far_.get());
    EXPECT_TRUE(is_raw());
  }
  EXPECT_FALSE(is_raw());
}

// An answer of the terminal to what came from inside is not left for the shell to read.
TEST_F(RawTerminalTest, WhatWasTypedAndNotReadIsThrownAway) {
  auto raw = RawTerminal::make(far_.get());
  ASSERT_EQ(::write(near_.get(), "\x1b[1;1R\n", 7), 7);
  pollfd polled = {far_.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 10'000), 1);
  raw->restore();
  EXPECT_EQ(::poll(&polled, 1, 0), 0);
}

TEST_F(RawTerminalTest, SignalsThatEndTheProcessGiveTheOldModesBack) {
  for (const int number : {SIGTERM, SIGUSR1, SIGALRM, SIGINT, SIGHUP}) {
    const int pid = ::fork();
    if (pid == 0) {
      const auto raw = RawTerminal::make(far_.get());
      if (!raw || !is_raw()) ::_exit(9);
      (void)::raise(number);
      ::_exit(8);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number << " " << status;
    EXPECT_FALSE(is_raw()) << number;
  }
}

// What the process was started to ignore stays ignored.
TEST_F(RawTerminalTest, WhatIsIgnoredStaysSo) {
  const auto before = ::signal(SIGUSR1, SIG_IGN);
  auto raw = RawTerminal::make(far_.get());
  (void)::raise(SIGUSR1);
  EXPECT_TRUE(is_raw());
  raw->restore();
  EXPECT_EQ(::signal(SIGUSR1, before), SIG_IGN);
}

TEST_F(RawTerminalTest, OnlyATerminalHasModes) {
  const base::Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(RawTerminal::make(null.get()));
  const WindowSize none = window_size(null.get());
  EXPECT_EQ(none.rows + none.columns, 0);
}

TEST_F(RawTerminalTest, SizesAreTheTerminals) {
  const winsize size = {33, 77, 0, 0};
  ASSERT_EQ(::ioctl(near_.get(), TIOCSWINSZ, &size), 0);
  const WindowSize seen = window_size(far_.get());
  EXPECT_EQ(seen.rows, 33);
  EXPECT_EQ(seen.columns, 77);
}

}  // namespace
}  // namespace os
