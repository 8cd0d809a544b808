// The accepting loops: their bound, and what becomes of whoever is over it.
#include "gateway/servers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "files"
host = "files.example.org"
ports = [80]
)";

class ServersTest : public ::testing::Test {
 protected:
  // A gateway that listens for connections to files.example.org:80.
  void open() {
    world.names["files.example.org"] = {"93.184.216.34"};
    world.listening["93.184.216.34:80"] = upstream.port();
    Core& core = world.core();
    const auto place = core.names.give("files.example.org")->place.v4;
    core.destination_of = [place](int) -> base::Result<os::Endpoint> {
      return to_endpoint(place, 80);
    };
    refused = std::make_unique<RefusedLog>(core);
    servers = std::make_unique<Servers>(core, world.dns(), *refused, [] {});
    base::Fd listener = std::move(*os::listen(os::Endpoint{.address = {127, 0, 0, 1}}));
    port = os::local_endpoint(listener.get())->port;
    CaptureSockets sockets;
    sockets.tcp4 = std::move(listener);
    ASSERT_TRUE(servers->open(std::move(sockets)));
  }
  void TearDown() override {
    if (servers) servers->close();
  }
  static std::string ask(const Peer& peer) {
    peer.send("GET / HTTP/1.1\r\nHost: files.example.org\r\nConnection: close\r\n\r\n");
    return peer.read_all();
  }
  int count(const std::string& text) {
    int found = 0;
    for (const auto& decision : world.decisions()) found += decision.has(text) ? 1 : 0;
    return found;
  }

  Upstream upstream{[](const Peer& peer) {
    if (!peer.read_until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    }
  }};
  World world{kPolicy};
  std::uint16_t port = 0;
  std::unique_ptr<RefusedLog> refused;
  std::unique_ptr<Servers> servers;
};

// N125: who is over the bound hears so, and is served once there is room.
TEST_F(ServersTest, OverTheBoundIs503AndNeverAHang) {
  world.limits.connections = 2;
  world.limits.turned_away = 1;
  world.limits.queued = std::chrono::milliseconds(30);
  open();
  std::string told;
  bool reset = false;
  std::string after;
  world.run([&] {
    Peer first = Peer::connect(port);
    Peer second = Peer::connect(port);
    // Silent ones hold their places; the next is told, and with it there, one more is reset.
    const Peer third = Peer::connect(port);
    third.send("G");
    while (world.core().connections.size() < 3) ::usleep(1000);
    const Peer fourth = Peer::connect(port);
    reset = fourth.was_reset();
    told = ask(third);
    first.close();
    second.close();
    while (!after.contains("200 OK")) after = ask(Peer::connect(port));
  });
  EXPECT_TRUE(reset);
  EXPECT_TRUE(told.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << told;
  EXPECT_TRUE(told.contains("Retry-After: 1\r\n"));
  EXPECT_TRUE(told.contains("X-Cerco-Deny: too-many-connections\r\n"));
  EXPECT_GE(count("too-many-connections"), 1);
}

// A moment's rush is no refusal: it waits in the kernel's queue.
TEST_F(ServersTest, ARushWaitsItsTurn) {
  world.limits.connections = 2;
  world.limits.queued = std::chrono::seconds(60);
  open();
  int served = 0;
  world.run([&] {
    std::vector<Peer> peers;
    peers.reserve(12);
    for (int i = 0; i < 12; ++i) peers.push_back(Peer::connect(port));
    for (Peer& peer : peers) {
      served += ask(peer).contains("200 OK") ? 1 : 0;
      peer.close();
    }
  });
  EXPECT_EQ(served, 12);
  EXPECT_EQ(count("too-many-connections"), 0);
}

}  // namespace
}  // namespace gateway
