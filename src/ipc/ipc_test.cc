// Tests of module ipc.
#include "ipc/ipc.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "os/os.h"

namespace {

TEST(Channel, CarriesBytesAndDescriptors) {
  auto ends = ipc::make_pair();
  ASSERT_TRUE(ends);
  auto pipe = os::pipe();
  ASSERT_TRUE(pipe);
  const std::array<int, 1> fds = {pipe->second.get()};
  ASSERT_TRUE(ends->first.send("hello", fds));
  auto got = ends->second.receive();
  ASSERT_TRUE(got && got->has_value());
  EXPECT_EQ((*got)->bytes, "hello");
  ASSERT_EQ((*got)->fds.size(), 1U);
  ASSERT_EQ(::write((*got)->fds[0].get(), "x", 1), 1);
  EXPECT_EQ(os::read_some(pipe->first.get(), 1, "pipe"), "x");
}

TEST(Channel, PeersEndIsNothingAndSendingIsAnError) {
  auto ends = ipc::make_pair();
  ASSERT_TRUE(ends);
  {
    const base::Fd gone = ends->first.release();
  }
  auto got = ends->second.receive();
  ASSERT_TRUE(got);
  EXPECT_FALSE(got->has_value());
  const auto sent = ends->second.send("x", {});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().number, EPIPE);
}

TEST(Channel, LongMessagesAreWholeOrRefused) {
  auto ends = ipc::make_pair();
  ASSERT_TRUE(ends);
  const std::string longest(ipc::kMaxMessage, 'a');
  ASSERT_TRUE(ends->first.send(longest, {}));
  auto got = ends->second.receive();
  ASSERT_TRUE(got && got->has_value());
  EXPECT_EQ((*got)->bytes, longest);
  EXPECT_FALSE(ends->first.send(longest + "a", {}));
}

}  // namespace
