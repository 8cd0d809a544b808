// Tests of module os.
#include "os/os.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace {

TEST(Spawn, GivesExactlyTheDescriptorsNamed) {
  auto pipe = os::pipe();
  ASSERT_TRUE(pipe);
  const std::array<std::string, 3> argv = {
      "/bin/sh", "-c",
      "i=0; while [ $i -lt 64 ]; do [ -e /proc/$$/fd/$i ] && printf '%s ' $i >&7;"
      " i=$((i+1)); done"};
  const std::array<std::pair<int, int>, 1> pairs = {std::pair{pipe->second.get(), 7}};
  auto child = os::spawn(argv, {}, pairs);
  ASSERT_TRUE(child) << child.error().line();
  pipe->second.reset();
  const auto text = os::read_all(pipe->first.get(), 1000, "pipe");
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "0 1 2 7 ");
  EXPECT_EQ(child->wait(), 0);
}

TEST(Spawn, AMissingProgramIsAnErrorThatNamesIt) {
  const std::array<std::string, 1> argv = {"/nonexistent/program"};
  const auto child = os::spawn(argv, {}, {});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().line(), "start /nonexistent/program: ENOENT (No such file or directory)");
}

// How many processors a child of the test may use afterwards.
int usable_after(std::uint64_t count) {
  const pid_t pid = ::fork();
  if (pid == 0)
    ::_exit(os::use_processors(count) ? static_cast<int>(os::usable_processors()) : 255);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(UseProcessors, ThereAreAsManyAsAskedForAndNeverMoreThanThereWere) {
  const auto all = static_cast<int>(os::usable_processors());
  for (int count = 1; count <= all; ++count) {
    for (int again = 0; again < 8; ++again) EXPECT_EQ(usable_after(count), count);
  }
  EXPECT_EQ(usable_after(all + 1), all);
  EXPECT_EQ(usable_after(~0ULL), all);
}

// Two processes that inherit one description read it at the same time.
TEST(ReadAll, LeavesTheSharedPositionAlone) {
  const auto fd = os::sealed_memfd("t", "abcdef");
  ASSERT_TRUE(fd);
  ASSERT_EQ(::lseek(fd->get(), 3, SEEK_SET), 3);
  EXPECT_EQ(os::read_all(fd->get(), 10, "memfd"), "abcdef");
  EXPECT_EQ(::lseek(fd->get(), 0, SEEK_CUR), 3);
}

TEST(SealedMemfd, CannotBeChanged) {
  auto fd = os::sealed_memfd("t", "abc");
  ASSERT_TRUE(fd);
  EXPECT_EQ(os::read_all(fd->get(), 10, "memfd"), "abc");
  EXPECT_NE(::write(fd->get(), "x", 1), 1);
  EXPECT_FALSE(os::read_all(fd->get(), 2, "memfd"));
}

}  // namespace
