// Connections to servers inside: found, refused, carried, and held by nobody.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>

#include "init/inside_test.h"
#include "os/os.h"

namespace init {
namespace {

constexpr int kPatience = 20'000;

// Inside shares the network of this process: servers of the test are servers inside.
class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto word = inside_.control.hear<frame::FromInit>();
    ASSERT_TRUE(word && std::holds_alternative<frame::Ready>(*word));
  }
  base::Fd ask(std::uint16_t port, frame::Reach reach) {
    auto pair = os::socket_pair(SOCK_STREAM);
    if (!pair) std::abort();
    inside_.control.say(frame::ToInit(frame::Connect{1000, 1000, port, reach}),
                        {pair->second.get()});
    return std::move(pair->first);
  }
  // The byte that says how it went; -1 when none came.
  static int answer(const base::Fd& way) {
    pollfd polled = {way.get(), POLLIN, 0};
    char byte[1];
    if (::poll(&polled, 1, kPatience) != 1) return -1;
    return os::receive(way.get(), byte).bytes == 1 ? static_cast<unsigned char>(byte[0]) : -1;
  }
  // The process that carries the connection.
  [[nodiscard]] int child() const {
    const std::string pid = std::to_string(inside_.pid());
    std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
    int child = 0;
    children >> child;
    return child;
  }
  static base::Fd server(bool v6, std::uint16_t& port) {
    os::Endpoint at;
    at.v6 = v6;
    if (v6) {
      at.address[15] = 1;
    } else {
      at.address = {127, 0, 0, 1};
    }
    auto listener = os::listen(at);
    if (!listener) std::abort();
    port = os::local_endpoint(listener->get())->port;
    return std::move(*listener);
  }
  static base::Fd accept(const base::Fd& listener) {
    pollfd polled = {listener.get(), POLLIN, 0};
    (void)::poll(&polled, 1, kPatience);
    auto accepted = os::accept(listener.get());
    return accepted ? std::move(*accepted) : base::Fd();
  }
  Inside inside_{Way::direct};
};

TEST_F(ConnectionTest, BytesGoBothWaysAndEndsAreToldApart) {
  for (const bool v6 : {false, true}) {
    std::uint16_t port = 0;
    const base::Fd listener = server(v6, port);
    const base::Fd way = ask(port, frame::Reach::connect);
    EXPECT_EQ(answer(way), 0);
    base::Fd connected = accept(listener);
    ASSERT_TRUE(connected.open());
    ASSERT_TRUE(os::write_all(way.get(), "question", "way"));
    ASSERT_TRUE(os::shut_down_write(way.get()));
    pollfd polled = {connected.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&polled, 1, kPatience), 1);
    char bytes[16];
    EXPECT_EQ(os::receive(connected.get(), bytes).bytes, 8U);
    ASSERT_EQ(os::send(connected.get(), "answer").bytes, 6U);
    connected.reset();
    EXPECT_EQ(*os::read_all(way.get(), 100, "way"), "answer");
  }
}

TEST_F(ConnectionTest, NobodyListeningIsRefused) {
  std::uint16_t port = 0;
  server(false, port).reset();
  EXPECT_EQ(answer(ask(port, frame::Reach::connect)), ECONNREFUSED);
  EXPECT_EQ(answer(ask(port, frame::Reach::look)), ECONNREFUSED);
}

// Looked at, a server has no connection to accept.
TEST_F(ConnectionTest, LookingTakesNoConnection) {
  for (const bool v6 : {false, true}) {
    std::uint16_t port = 0;
    const base::Fd listener = server(v6, port);
    const base::Fd way = ask(port, frame::Reach::look);
    EXPECT_EQ(answer(way), 0);
    EXPECT_EQ(*os::read_all(way.get(), 10, "way"), "");
    EXPECT_EQ(os::accept(listener.get()).error().number, EAGAIN);
  }
}

TEST_F(ConnectionTest, WhoCarriesItHasNoRight) {
  std::uint16_t port = 0;
  const base::Fd listener = server(false, port);
  const base::Fd way = ask(port, frame::Reach::connect);
  ASSERT_EQ(answer(way), 0);
  const std::string status =
      os::read_file("/proc/" + std::to_string(child()) + "/status", 8192).value_or("");
  for (const char* line :
       {"\nUid:\t1000\t1000\t1000\t1000\n", "\nCapEff:\t0000000000000000\n",
        "\nCapBnd:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"}) {
    EXPECT_TRUE(status.contains(line)) << line << status;
  }
}

// It has the workload's uid, so that the workload can stop it: then it is of no use and goes.
TEST_F(ConnectionTest, AStoppedOneIsEnded) {
  std::uint16_t port = 0;
  const base::Fd listener = server(false, port);
  const base::Fd way = ask(port, frame::Reach::connect);
  ASSERT_EQ(answer(way), 0);
  const base::Fd connected = accept(listener);
  const int carrier = child();
  ASSERT_GT(carrier, 0);
  ASSERT_EQ(::kill(carrier, SIGSTOP), 0);
  EXPECT_EQ(*os::read_all(way.get(), 10, "way"), "");
}

}  // namespace
}  // namespace init
