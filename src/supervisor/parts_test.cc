// What may be published: a listener on the loopback, and nothing else.
#include "supervisor/parts.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "os/os.h"

namespace supervisor {
namespace {

base::Fd listen_at(std::array<std::uint8_t, 16> address, bool v6) {
  os::Endpoint at;
  at.address = address;
  at.v6 = v6;
  auto listener = os::listen(at);
  return listener ? std::move(*listener) : base::Fd();
}

TEST(LoopbackPort, IsThatOfAListenerOnTheLoopback) {
  const base::Fd listener = listen_at({127, 0, 0, 1}, false);
  const auto port = loopback_port(listener.get());
  ASSERT_TRUE(port);
  EXPECT_EQ(*port, os::local_endpoint(listener.get())->port);
}

TEST(LoopbackPort, IsNothingElses) {
  const base::Fd everywhere = listen_at({}, false);
  EXPECT_FALSE(loopback_port(everywhere.get()));
  const base::Fd everywhere6 = listen_at({}, true);
  EXPECT_FALSE(everywhere6.open() && loopback_port(everywhere6.get()));
  const base::Fd idle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(loopback_port(idle.get()));
  const auto pair = os::socket_pair(SOCK_STREAM);
  ASSERT_TRUE(pair);
  EXPECT_FALSE(loopback_port(pair->first.get()));
  const auto pipe = os::pipe();
  ASSERT_TRUE(pipe);
  EXPECT_FALSE(loopback_port(pipe->first.get()));
}

}  // namespace
}  // namespace supervisor
