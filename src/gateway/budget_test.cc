// What a rule's max_up, max_down and max_requests let through: to the byte, all connections
// together.
#include "gateway/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "raw"
tcp = "raw.example.org:7000"
max_up = "192KiB"
max_down = "192KiB"
[[egress]]
name = "web"
host = "web.example.org"
ports = [80]
methods = ["GET", "POST"]
max_up = "1KiB"
max_down = "1KiB"
[[egress]]
name = "once"
host = "once.example.org"
ports = [80]
max_requests = 1
)";

constexpr std::size_t kRaw = std::size_t{192} * 1024;

class BudgetTest : public ::testing::Test {
 protected:
  void serve(const std::string& host, const Upstream& upstream, std::uint16_t port) {
    world.names[host] = {"93.184.216.34"};
    world.listening["93.184.216.34:" + std::to_string(port)] = upstream.port();
  }
  std::string post(const std::string& head, const std::string& body) {
    const Peer client = world.connect("web.example.org", 80);
    std::string answer;
    world.run([&] {
      client.send("POST / HTTP/1.1\r\nHost: web.example.org\r\n" + head + "\r\n" + body);
      client.finish_sending();
      answer = client.read_all();
    });
    world.settle();
    return answer;
  }
  // Events that say that a budget ended something.
  int spent() {
    int count = 0;
    for (const testing::Event& event : world.events()) {
      if (event.has(R"("problem":"budget")")) ++count;
    }
    return count;
  }
  World world{kPolicy};
};

TEST(Meter, GivesAllOrNothingAndIsShared) {
  std::uint64_t used = 0;
  Meter one(used, 10);
  Meter other(used, 10);
  EXPECT_TRUE(one.take(6));
  EXPECT_EQ(other.left(), 4U);
  EXPECT_FALSE(other.take(5));
  EXPECT_TRUE(other.take(4));
  EXPECT_EQ(one.left(), 0U);
  EXPECT_FALSE(one.take(1));
  EXPECT_TRUE(one.take(0));
  EXPECT_EQ(Meter().left(), policy::kUnlimited);
  EXPECT_TRUE(Meter().take(policy::kUnlimited));
}

// Past the point where splice moves a megabyte at once.
TEST_F(BudgetTest, ATunnelPassesNotAByteMore) {
  std::string came;
  Upstream upstream([&](const Peer& peer) { came = peer.read_all(); });
  serve("raw.example.org", upstream, 7000);
  const Peer client = world.connect("raw.example.org", 7000);
  world.run([&] {
    for (int i = 0; i < 200; ++i) client.send(std::string(4096, 'x'));
    (void)client.read_all();
  });
  world.settle();
  EXPECT_EQ(spent(), 1);
  EXPECT_LE(came.size(), kRaw);
  EXPECT_GT(came.size(), kRaw / 2);
}

TEST_F(BudgetTest, WhatEndsAtTheBudgetIsWhole) {
  std::string came;
  Upstream upstream([&](const Peer& peer) {
    came = peer.read_all();
    peer.send(std::string(kRaw, 'y'));
  });
  serve("raw.example.org", upstream, 7000);
  const Peer client = world.connect("raw.example.org", 7000);
  std::string answer;
  world.run([&] {
    client.send(std::string(kRaw, 'x'));
    client.finish_sending();
    answer = client.read_all();
  });
  world.settle();
  EXPECT_EQ(spent(), 0);
  EXPECT_EQ(came.size(), kRaw);
  EXPECT_EQ(answer.size(), kRaw);
}

TEST_F(BudgetTest, DownwardsToo) {
  Upstream upstream([&](const Peer& peer) { peer.send(std::string(2 * kRaw, 'y')); });
  serve("raw.example.org", upstream, 7000);
  const Peer client = world.connect("raw.example.org", 7000);
  std::string answer;
  world.run([&] { answer = client.read_all(); });
  world.settle();
  EXPECT_EQ(spent(), 1);
  EXPECT_LE(answer.size(), kRaw);
}

// Many at once get no more than one: the second finds what the first, still open, has left.
TEST_F(BudgetTest, ConnectionsShareIt) {
  Upstream upstream([](const Peer& peer) {
    peer.send(peer.read_exactly(kRaw - 10).empty() ? "no" : "ok");
    (void)peer.read_all();
  });
  serve("raw.example.org", upstream, 7000);
  const Peer first = world.connect("raw.example.org", 7000);
  const Peer second = world.connect("raw.example.org", 7000);
  world.run([&] {
    first.send(std::string(kRaw - 10, 'x'));
    EXPECT_EQ(first.read_exactly(2), "ok");
    second.send(std::string(4096, 'x'));
    (void)second.read_all();
    first.finish_sending();
    (void)first.read_all();
  });
  world.settle();
  EXPECT_EQ(spent(), 1);
  for (const testing::Event& event : world.events()) {
    if (event.has(R"("problem":"budget")")) {
      EXPECT_TRUE(event.has(R"("bytes_up":10,)")) << event.members;
    }
  }
}

TEST_F(BudgetTest, ARequestThatSaysThatItIsTooLongIsRefused) {
  Upstream upstream([](const Peer& peer) { (void)peer.read_all(); });
  serve("web.example.org", upstream, 80);
  const std::string answer = post("Content-Length: 2000\r\n", std::string(2000, 'x'));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << answer;
  EXPECT_TRUE(answer.contains("X-Cerco-Deny: budget")) << answer;
  EXPECT_TRUE(world.dialled.empty());
}

TEST_F(BudgetTest, ABodyOfUnknownLengthIsCutBeforeItPasses) {
  std::string came;
  Upstream upstream([&](const Peer& peer) { came = peer.read_all(); });
  serve("web.example.org", upstream, 80);
  const std::string answer =
      post("Transfer-Encoding: chunked\r\n", "7d0\r\n" + std::string(2000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403")) << answer;
  EXPECT_EQ(spent(), 1);
  EXPECT_LE(came.size(), 1024U);
}

// Data leaves in paths and fields as well as in bodies.
TEST_F(BudgetTest, HeadsCount) {
  std::string came;
  Upstream upstream([&](const Peer& peer) {
    for (int i = 0; i < 2; ++i) {
      came += peer.read_until("\r\n\r\n");
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  serve("web.example.org", upstream, 80);
  const Peer client = world.connect("web.example.org", 80);
  std::string answer;
  world.run([&] {
    const std::string long_one =
        "GET /" + std::string(600, 'x') + " HTTP/1.1\r\nHost: web.example.org\r\n\r\n";
    client.send(long_one);
    EXPECT_TRUE(client.read_until("ok").starts_with("HTTP/1.1 200"));
    client.send(long_one);
    client.finish_sending();
    answer = client.read_all();
  });
  EXPECT_TRUE(answer.contains("X-Cerco-Deny: budget")) << answer;
  EXPECT_LE(came.size(), 1024U);
}

TEST_F(BudgetTest, AnAnswerIsCut) {
  Upstream upstream([&](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'y'));
  });
  serve("web.example.org", upstream, 80);
  const std::string answer = post("Content-Length: 2\r\n", "hi");
  EXPECT_LE(std::ranges::count(answer, 'y'), 1024) << answer.size();
  EXPECT_EQ(spent(), 1);
}

// Two connections that ask at the same moment: a request is counted before its name is looked up.
TEST_F(BudgetTest, RequestsAtOnceAreCountedTogether) {
  std::atomic<int> requests = 0;
  Upstream upstream([&](const Peer& peer) {
    if (!peer.read_until("\r\n\r\n").empty()) ++requests;
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  });
  serve("once.example.org", upstream, 80);
  const Peer one = world.connect("once.example.org", 80);
  const Peer other = world.connect("once.example.org", 80);
  for (const Peer* peer : {&one, &other}) {
    peer->send("GET / HTTP/1.1\r\nHost: once.example.org\r\n\r\n");
    peer->finish_sending();
  }
  std::string answers;
  world.run([&] { answers = one.read_all() + other.read_all(); });
  EXPECT_EQ(requests, 1);
  EXPECT_TRUE(answers.contains("200 OK")) << answers;
  EXPECT_TRUE(answers.contains("X-Cerco-Deny: max-requests")) << answers;
}

}  // namespace
}  // namespace gateway
