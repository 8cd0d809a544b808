// The process of a published port: what it asks of the supervisor, what it passes on, and its
// bounds.
#include "publish/publish.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "confine/confine.h"
#include "os/os.h"

namespace publish {
namespace {

constexpr int kPatience = 20'000;

os::Endpoint loopback(std::uint16_t port) {
  os::Endpoint at;
  at.address = {127, 0, 0, 1};
  at.port = port;
  return at;
}

bool readable(int fd) {
  pollfd polled = {fd, POLLIN, 0};
  return ::poll(&polled, 1, kPatience) == 1;
}

// A started publisher; the test stands for the supervisor, and for cerco-init.
class PublisherTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = os::listen(loopback(0));
    auto pair = ipc::make_pair();
    ASSERT_TRUE(listener && pair);
    port_ = os::local_endpoint(listener->get())->port;
    control_ = std::move(pair->first);
    pid_ = ::fork();
    if (pid_ == 0) {
      control_ = {};
      const std::uint32_t id = os::effective_uid() == 0 ? confine::kPublisherId : 0;
      ::_exit(serve(std::move(pair->second), std::move(*listener), id));
    }
  }
  void TearDown() override {
    control_ = {};
    if (pid_ > 0) EXPECT_EQ(wait(), 0);
  }
  int wait() {
    int status = -1;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return status;
  }
  template <class Word>
  std::optional<Word> hear() {
    if (!readable(control_.fd())) return std::nullopt;
    const auto message = control_.receive();
    if (!message || !*message || !(*message)->fds.empty()) return std::nullopt;
    const auto word = base::decode<FromPublisher>((*message)->bytes, "publisher");
    const Word* held = word ? std::get_if<Word>(&*word) : nullptr;
    return held == nullptr ? std::nullopt : std::optional<Word>(*held);
  }
  // Answers a Want with a way, and gives its inner end.
  base::Fd give_way() {
    auto pair = os::socket_pair(SOCK_STREAM);
    const std::array<int, 1> fds = {pair->first.get()};
    EXPECT_TRUE(ipc::send_value(control_, ToPublisher(Way{}), fds));
    return std::move(pair->second);
  }
  void open() {
    ASSERT_TRUE(hear<Want>()->look);
    const base::Fd way = give_way();
    ASSERT_TRUE(os::write_all(way.get(), std::string_view("\0", 1), "way"));
    ASSERT_EQ(hear<Opened>()->error, 0U);
  }
  base::Fd connect() const {
    auto started = os::start_connect(loopback(port_));
    EXPECT_TRUE(started);
    return std::move(*started);
  }

  std::uint16_t port_ = 0;
  ipc::Channel control_;
  int pid_ = 0;
};

TEST_F(PublisherTest, NobodyInsideIsSaidAtOnce) {
  ASSERT_TRUE(hear<Want>()->look);
  const base::Fd way = give_way();
  const char refused = ECONNREFUSED;
  ASSERT_TRUE(os::write_all(way.get(), {&refused, 1}, "way"));
  EXPECT_EQ(hear<Opened>()->error, static_cast<std::uint32_t>(ECONNREFUSED));
  EXPECT_EQ(wait(), 0);
}

TEST_F(PublisherTest, AWayThatEndsUnansweredIsAnErrorToo) {
  ASSERT_TRUE(hear<Want>()->look);
  give_way().reset();
  EXPECT_NE(hear<Opened>()->error, 0U);
  EXPECT_EQ(wait(), 0);
}

TEST_F(PublisherTest, ConnectionsAreCarriedBothWays) {
  open();
  const base::Fd client = connect();
  ASSERT_FALSE(hear<Want>()->look);
  base::Fd way = give_way();
  ASSERT_TRUE(os::write_all(way.get(), std::string_view("\0", 1), "way"));
  ASSERT_TRUE(os::wait_writable(client.get(), kPatience));
  ASSERT_EQ(os::send(client.get(), "question").bytes, 8U);
  ASSERT_TRUE(os::shut_down_write(client.get()));
  EXPECT_EQ(*os::read_all(way.get(), 100, "way"), "question");
  ASSERT_TRUE(os::write_all(way.get(), "answer", "way"));
  way.reset();
  ASSERT_TRUE(hear<Closed>());
  EXPECT_EQ(*os::read_all(client.get(), 100, "client"), "answer");
}

TEST_F(PublisherTest, WhatIsRefusedInsideIsResetOutside) {
  open();
  const base::Fd client = connect();
  ASSERT_TRUE(hear<Want>());
  const base::Fd way = give_way();
  const char refused = ECONNREFUSED;
  ASSERT_TRUE(os::write_all(way.get(), {&refused, 1}, "way"));
  ASSERT_TRUE(hear<Closed>());
  ASSERT_TRUE(readable(client.get()));
  char byte[1];
  EXPECT_EQ(os::receive(client.get(), byte).error, ECONNRESET);
}

// E68: a client that does not read, and a server that floods it.
TEST_F(PublisherTest, AStalledClientHoldsNobodyElseUp) {
  open();
  const base::Fd stalled = connect();
  ASSERT_TRUE(hear<Want>());
  const base::Fd flooding = give_way();
  ASSERT_TRUE(os::write_all(flooding.get(), std::string_view("\0", 1), "way"));
  ASSERT_TRUE(os::set_nonblocking(flooding.get()));
  const std::string piece(65536, 'x');
  for (int quiet = 0; quiet < 20;) {
    if (os::send(flooding.get(), piece).error == EAGAIN) {
      ++quiet;
      ::usleep(5000);
    }
  }
  const base::Fd other = connect();
  ASSERT_TRUE(hear<Want>());
  const base::Fd way = give_way();
  ASSERT_TRUE(os::write_all(way.get(), std::string_view("\0hello", 6), "way"));
  ASSERT_TRUE(readable(other.get()));
  char bytes[5];
  EXPECT_EQ(os::receive(other.get(), bytes).bytes, 5U);
}

TEST_F(PublisherTest, ConnectionsAreBounded) {
  open();
  std::vector<base::Fd> clients;
  for (int i = 0; i < 80; ++i) clients.push_back(connect());
  int wanted = 0;
  while (true) {
    pollfd polled = {control_.fd(), POLLIN, 0};
    if (::poll(&polled, 1, 500) != 1) break;
    ASSERT_TRUE(hear<Want>());
    ++wanted;
  }
  EXPECT_EQ(wanted, 64);
}

// Whoever speaks for the supervisor and sends something else ends it.
TEST_F(PublisherTest, AMessageWithoutAWayEndsIt) {
  ASSERT_TRUE(hear<Want>());
  ASSERT_TRUE(ipc::send_value(control_, ToPublisher(Way{}), {}));
  EXPECT_EQ(WEXITSTATUS(wait()), 125);
}

}  // namespace
}  // namespace publish
