// Copying between two sockets: exact, both ways, ends told apart, and bounded.
#include "os/duplex.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>

#include "os/os.h"

namespace os {
namespace {

// near ⇄ [left, copying, right] ⇄ far
class DuplexTest : public testing::Test {
 protected:
  void SetUp() override {
    auto one = socket_pair(SOCK_STREAM);
    auto two = socket_pair(SOCK_STREAM);
    ASSERT_TRUE(one && two);
    near_ = std::move(one->first);
    left_ = std::move(one->second);
    right_ = std::move(two->first);
    far_ = std::move(two->second);
    for (const base::Fd* end : {&near_, &far_}) ASSERT_TRUE(set_nonblocking(end->get()));
    copying_.emplace(left_.get(), right_.get());
  }
  // As often as something can be moved.
  void turn() {
    while (!copying_->over()) {
      auto polled = copying_->wants();
      if (::poll(polled.data(), polled.size(), 0) <= 0) return;
      copying_->act(polled);
    }
  }
  static std::string take(const base::Fd& from) {
    std::string all;
    char piece[65536];
    while (true) {
      const Moved moved = receive(from.get(), piece);
      if (moved.bytes == 0) return all;
      all.append(piece, moved.bytes);
    }
  }
  static bool at_end(const base::Fd& from) {
    char byte[1];
    return receive(from.get(), byte).end();
  }

  base::Fd near_, left_, right_, far_;
  std::optional<Duplex> copying_;
};

TEST_F(DuplexTest, BothWaysArriveAsTheyAre) {
  (void)send(near_.get(), "to far");
  (void)send(far_.get(), "to near");
  turn();
  EXPECT_EQ(take(far_), "to far");
  EXPECT_EQ(take(near_), "to near");
}

TEST_F(DuplexTest, TheEndOfOneStreamLeavesTheOther) {
  (void)send(near_.get(), "question");
  ASSERT_TRUE(shut_down_write(near_.get()));
  turn();
  EXPECT_EQ(take(far_), "question");
  EXPECT_TRUE(at_end(far_));
  EXPECT_FALSE(copying_->over());
  (void)send(far_.get(), "answer");
  ASSERT_TRUE(shut_down_write(far_.get()));
  turn();
  EXPECT_EQ(take(near_), "answer");
  EXPECT_TRUE(at_end(near_));
  EXPECT_TRUE(copying_->over());
  EXPECT_FALSE(copying_->failed());
}

// Nobody reads at the far end: what the copying holds is bounded, and the near end is held back.
TEST_F(DuplexTest, AStalledReaderHoldsItsWriterBack) {
  const std::string piece(65536, 'x');
  std::size_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    const Moved moved = send(near_.get(), piece);
    sent += moved.bytes;
    turn();
  }
  EXPECT_LT(sent, std::size_t{8} << 20);
  EXPECT_EQ(send(near_.get(), piece).error, EAGAIN);
  // The other way is not held up.
  (void)send(far_.get(), "still");
  turn();
  EXPECT_EQ(take(near_), "still");
  std::size_t received = 0;
  for (std::string more = take(far_); !more.empty(); more = take(far_)) {
    received += more.size();
    turn();
  }
  EXPECT_EQ(received, sent);
}

TEST_F(DuplexTest, ASideThatGoesIsAFailure) {
  (void)send(near_.get(), "x");
  far_.reset();
  turn();
  (void)send(near_.get(), "x");
  turn();
  EXPECT_TRUE(copying_->over());
  EXPECT_TRUE(copying_->failed());
}

// The sandbox may send descriptors along: none arrives.
TEST_F(DuplexTest, DescriptorsDoNotComeAlong) {
  const int fds[] = {near_.get()};
  ASSERT_TRUE(send_message(far_.get(), "x", fds));
  turn();
  msghdr message = {};
  char byte[1];
  iovec part = {byte, 1};
  alignas(cmsghdr) char control[128];
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  EXPECT_EQ(receive(near_.get(), message, 0), 1);
  EXPECT_EQ(CMSG_FIRSTHDR(&message), nullptr);
}

}  // namespace
}  // namespace os
