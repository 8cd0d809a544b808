// Tests of what carries bytes between the command's pipes and ours (F92, F93).
#include "cli/streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <limits>

#include "cli/cli_test.h"
#include "os/os.h"

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Runs `command` as a child on the far ends (0, 1, 2) and carries until it ends and all is drained.
struct Carried {
  int status = -1;
  std::string out, err;
  bool over_limit = false;
  std::string problem;
};
Carried carry(int in, int out, int err, std::uint64_t limit, const std::function<int()>& command) {
  auto streams = cli::Streams::make(in, out, err, limit);
  EXPECT_TRUE(streams);
  const auto far = streams->far_ends();
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 3; ++i) ::dup2(far[static_cast<std::size_t>(i)], i);
    (void)::close_range(3, ~0U, 0);
    (void)::signal(SIGPIPE, SIG_DFL);
    ::_exit(command());
  }
  streams->close_far_ends();
  const base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  std::vector<pollfd> polled;
  bool ended = false;
  while (!ended || !streams->drained()) {
    polled.assign({{ended ? -1 : pidfd.get(), POLLIN, 0}});
    streams->watch(polled);
    (void)*os::wait_for(polled, ended ? streams->patience() : -1);
    streams->act(&polled[1]);
    if (!ended && polled[0].revents != 0) {
      ended = true;
      streams->finish();
    }
  }
  Carried done;
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  done.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  done.over_limit = streams->over_limit();
  done.problem = streams->problem();
  return done;
}

// The same with input from a file and output into files.
Carried carry_text(const std::string& input, std::uint64_t limit,
                   const std::function<int()>& command) {
  const cli_test::Folder folder;
  const base::Fd in = *os::open(folder.write("in", input), O_RDONLY, 0);
  const base::Fd out = *os::open(folder.at("out"), O_RDWR | O_CREAT, 0600);
  const base::Fd err = *os::open(folder.at("err"), O_RDWR | O_CREAT, 0600);
  Carried done = carry(in.get(), out.get(), err.get(), limit, command);
  done.out = *os::read_all(out.get(), 1 << 26, "out");
  done.err = *os::read_all(err.get(), 1 << 26, "err");
  return done;
}

// Copies its input to its output.
int cat() {
  while (true) {
    const auto part = os::read_some(0, 1000, "in");
    if (!part) return 1;
    if (part->empty()) return 0;
    if (!os::write_all(1, *part, "out")) return 2;
  }
}

TEST(Streams, AreByteExact) {
  std::string blob;
  for (std::uint64_t i = 0; i < 3'000'000; ++i) blob.push_back(static_cast<char>(i * 7919 >> 3));
  const Carried done = carry_text(blob, kNoLimit, cat);
  EXPECT_EQ(done.status, 0);
  EXPECT_TRUE(done.out == blob);
  EXPECT_EQ(carry_text("a\n\n\nb", kNoLimit, cat).out, "a\n\n\nb");
  EXPECT_EQ(carry_text("", kNoLimit, cat).out, "");
}

TEST(Streams, OutputAndErrorStaySeparate) {
  const Carried done = carry_text("", kNoLimit, [] {
    (void)os::write_all(1, "out", "");
    (void)os::write_all(2, "err", "");
    return 7;
  });
  EXPECT_EQ(done.out, "out");
  EXPECT_EQ(done.err, "err");
  EXPECT_EQ(done.status, 7);
}

TEST(Streams, ThroughPipesToo) {
  auto [reader, writer] = *os::pipe();
  auto [out_reader, out_writer] = *os::pipe();
  const std::string blob(200'000, 'x');
  const pid_t feeder = ::fork();
  if (feeder == 0) {
    out_reader.reset();
    (void)os::write_all(writer.get(), blob, "");
    ::_exit(0);
  }
  writer.reset();
  const pid_t consumer = ::fork();
  if (consumer == 0) {
    out_writer.reset();
    const auto all = os::read_all(out_reader.get(), 1 << 20, "");
    ::_exit(all && *all == blob ? 0 : 1);
  }
  out_reader.reset();
  EXPECT_EQ(carry(reader.get(), out_writer.get(), 2, kNoLimit, cat).status, 0);
  out_writer.reset();
  int status = 0;
  EXPECT_EQ(::waitpid(feeder, &status, 0), feeder);
  EXPECT_EQ(::waitpid(consumer, &status, 0), consumer);
  EXPECT_EQ(status, 0);
}

// E66: what is passed on never exceeds the limit, and the rest is drained so that the end can come.
TEST(Streams, TheLimitIsExactAndCountsBothStreams) {
  const Carried done = carry_text("", 100'000, [] {
    for (int i = 0; i < 100; ++i) {
      (void)os::write_all(1 + i % 2, std::string(10'000, 'x'), "");
    }
    return 0;
  });
  EXPECT_TRUE(done.over_limit);
  EXPECT_EQ(done.out.size() + done.err.size(), 100'000U);
  const Carried exact = carry_text("", 10, [] {
    (void)os::write_all(1, "0123456789", "");
    return 0;
  });
  EXPECT_FALSE(exact.over_limit);
  EXPECT_EQ(exact.out, "0123456789");
}

TEST(Streams, ACommandThatDoesNotReadItsInputEnds) {
  const Carried done = carry_text(std::string(1'000'000, 'x'), kNoLimit, [] {
    (void)::close(0);
    (void)os::write_all(1, "done", "");
    return 3;
  });
  EXPECT_EQ(done.status, 3);
  EXPECT_EQ(done.out, "done");
}

TEST(Streams, AReaderThatIsGoneEndsTheWriterAsAPipeWould) {
  auto [reader, writer] = *os::pipe();
  reader.reset();
  (void)::signal(SIGPIPE, SIG_IGN);
  const base::Fd null = *os::open("/dev/null", O_RDWR, 0);
  const Carried done = carry(null.get(), writer.get(), 2, kNoLimit, [] {
    while (os::write_all(1, std::string(4096, 'y'), "")) {
    }
    return 0;
  });
  EXPECT_EQ(done.status, 128 + SIGPIPE);
  EXPECT_EQ(done.problem, "") << "nobody wants it, so nothing is lost";
}

TEST(Streams, AFullDiskIsNamed) {
  const base::Fd full = *os::open("/dev/full", O_WRONLY, 0);
  const base::Fd null = *os::open("/dev/null", O_RDWR, 0);
  const Carried done = carry(null.get(), full.get(), 2, kNoLimit, [] {
    (void)os::write_all(1, "lost", "");
    return 0;
  });
  EXPECT_NE(done.problem.find("ENOSPC"), std::string::npos) << done.problem;
}

// What a background process still holds open does not keep us: after the end nothing more is waited
// for.
TEST(Streams, AnOpenFarEndDoesNotHoldUpTheEnd) {
  const base::Fd null = *os::open("/dev/null", O_RDWR, 0);
  auto streams = cli::Streams::make(null.get(), null.get(), null.get(), kNoLimit);
  ASSERT_TRUE(streams);
  ASSERT_TRUE(os::write_all(streams->far_ends()[1], "last words", ""));
  streams->finish();
  std::vector<pollfd> polled;
  for (int turns = 0; turns < 10 && !streams->drained(); ++turns) {
    polled.clear();
    streams->watch(polled);
    (void)*os::wait_for(polled, streams->patience());
    streams->act(polled.data());
  }
  EXPECT_TRUE(streams->drained());
  EXPECT_EQ(streams->stdout_bytes(), 10U);
}

}  // namespace
