// A change of the policy while connections are there: what ends, what goes on, and what is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <thread>

#include "gateway/change.h"
#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kFirst = R"(
[[egress]]
name = "db"
tcp = "db.example.com:5432"
[[egress]]
name = "other"
tcp = "other.example.com:5432"
[[egress]]
name = "web"
host = "web.example.com"
ports = [80]
methods = ["GET"]
max_requests = 3
)";
constexpr const char* kOther = "[[egress]]\nname = \"other\"\ntcp = \"other.example.com:5432\"\n";

policy::Policy parsed(const std::string& text) {
  auto effective = policy::parse(text, "t", {}, {.cpus_milli = 2000, .memory = 4ULL << 30});
  if (!effective) ADD_FAILURE() << effective.error().line();
  return effective ? effective->policy : policy::Policy{};
}

// Puts the rules of `text` in force while the gateway runs, as the supervisor's message does.
void change(World& world, const std::string& text, const std::vector<std::string>& retired = {}) {
  std::atomic<bool> done = false;
  asio::post(world.core().io, [&] {
    plan::Plan next = world.plan;
    const policy::Policy wanted = parsed(text);
    next.policy.egress = wanted.egress;
    next.policy.deny = wanted.deny;
    next.policy.network = wanted.network;
    next.retired = retired;
    ++next.policy.revision;
    put_in_force(world.core(), world.plan, std::move(next));
    done = true;
  });
  while (!done) std::this_thread::yield();
}

class Change : public ::testing::Test {
 protected:
  // Sends back what comes.
  static void echo(const Peer& peer) {
    while (true) {
      const std::string some = peer.read_some();
      if (some.empty()) return;
      peer.send(some);
    }
  }
  void serve(World& world, const std::string& name, const std::string& address, std::uint16_t port,
             const Upstream& upstream) {
    world.names[name] = {address};
    world.listening[address + ":" + std::to_string(port)] = upstream.port();
  }
  Upstream first_{echo};
  Upstream second_{echo};
};

// N96
TEST_F(Change, N96ARelayOfARevokedNameEndsAndItsAddressIsWorthNothing) {
  World world(kFirst);
  serve(world, "db.example.com", "93.184.216.34", 5432, first_);
  serve(world, "other.example.com", "93.184.216.35", 5432, second_);
  const Peer gone = world.connect("db.example.com", 5432);
  const Peer stays = world.connect("other.example.com", 5432);
  world.run([&] {
    gone.send("one");
    stays.send("two");
    EXPECT_EQ(gone.read_exactly(3), "one");
    EXPECT_EQ(stays.read_exactly(3), "two");
    change(world, kOther);
    EXPECT_EQ(gone.read_some(), "");
    stays.send("three");
    EXPECT_EQ(stays.read_exactly(5), "three");
    stays.finish_sending();
  });
  const Peer late = world.connect("db.example.com", 5432);  // the address that the client kept
  world.run([&] {
    late.send("\x01");
    EXPECT_EQ(late.read_some(), "");
  });
  world.settle();
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 3U);
  EXPECT_TRUE(decisions[0].has(R"("policy":1)"));
  EXPECT_TRUE(decisions[2].has(R"("policy":2)")) << decisions[2].members;
  EXPECT_TRUE(decisions[2].has(R"("verdict":"deny")")) << decisions[2].members;
  const auto events = world.events();
  EXPECT_EQ(std::ranges::count_if(
                events, [](const auto& event) { return event.has(R"("problem":"policy")"); }),
            1);
}

// The control: without the check of names nothing is looked at again.
TEST_F(Change, WithoutTheCheckOfNamesTheRelayGoesOn) {
  World world(kFirst, {plan::Protection::name_filter});
  serve(world, "db.example.com", "93.184.216.34", 5432, first_);
  const Peer client = world.connect("db.example.com", 5432);
  world.run([&] {
    client.send("one");
    EXPECT_EQ(client.read_exactly(3), "one");
    change(world, kOther);
    client.send("two");
    EXPECT_EQ(client.read_exactly(3), "two");
    client.finish_sending();
  });
}

TEST_F(Change, WhatWouldNotBeDialledNowEndsToo) {
  struct Row {
    const char* what;
    std::string before, after;
  };
  const std::string rule = "[[egress]]\nname = \"db\"\ntcp = \"db.example.com:5432\"\n";
  const Row rows[] = {{"a private range is closed", rule + "addresses = [\"10.2.0.0/16\"]\n", rule},
                      {"a denial of its address", rule + "addresses = [\"10.2.0.0/16\"]\n",
                       rule + "addresses = [\"10.2.0.0/16\"]\n[[deny]]\ncidr = \"10.2.3.0/24\"\n"}};
  for (const Row& row : rows) {
    World world(row.before);
    serve(world, "db.example.com", "10.2.3.4", 5432, first_);
    const Peer client = world.connect("db.example.com", 5432);
    world.run([&] {
      client.send("one");
      EXPECT_EQ(client.read_exactly(3), "one") << row.what;
      change(world, row.after);
      EXPECT_EQ(client.read_some(), "") << row.what;
    });
  }
}

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string kGet = "GET /a HTTP/1.1\r\nHost: web.example.com\r\n\r\n";

void serve_web(const Peer& peer) {
  while (!peer.read_until("\r\n\r\n").empty()) peer.send(kOk);
}

TEST_F(Change, TheNextRequestOfAKeptConnectionIsJudgedByTheNewRules) {
  World world(kFirst);
  Upstream web(serve_web);
  serve(world, "web.example.com", "93.184.216.36", 80, web);
  const Peer client = world.connect("web.example.com", 80);
  std::string second;
  std::string third;
  world.run([&] {
    client.send(kGet);
    EXPECT_TRUE(client.read_until("ok").starts_with("HTTP/1.1 200"));
    change(world,
           "[[egress]]\nname = \"web\"\nhost = \"web.example.com\"\nports = [80]\n"
           "methods = [\"GET\"]\npaths = [\"/b\"]\n");
    client.send(kGet);
    second = client.read_until("}");
    change(world, kFirst);
    client.send(kGet);
    third = client.read_until("ok");
  });
  EXPECT_TRUE(second.starts_with("HTTP/1.1 403")) << second;
  EXPECT_TRUE(third.starts_with("HTTP/1.1 200")) << third;
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(decisions[i].has("\"policy\":" + std::to_string(i + 1))) << decisions[i].members;
  }
}

TEST_F(Change, ABudgetIsNotGivenAgain) {
  World world(kFirst);
  Upstream web(serve_web);
  serve(world, "web.example.com", "93.184.216.36", 80, web);
  const Peer client = world.connect("web.example.com", 80);
  std::string last;
  world.run([&] {
    for (int i = 0; i < 3; ++i) {
      client.send(kGet);
      EXPECT_TRUE(client.read_until("ok").starts_with("HTTP/1.1 200")) << i;
      change(world, kFirst);
    }
    client.send(kGet);
    last = client.read_until("}");
  });
  EXPECT_TRUE(last.contains("max-requests")) << last;
}

// A rule that stays with what it has used, and one that is new at its place.
TEST_F(Change, ARuleAtAnothersPlaceHasABudgetOfItsOwn) {
  World world("[[egress]]\nhost = \"web.example.com\"\nports = [80]\nmax_requests = 1\n");
  Upstream web(serve_web);
  Upstream next(serve_web);
  serve(world, "web.example.com", "93.184.216.36", 80, web);
  serve(world, "next.example.com", "93.184.216.37", 80, next);
  const Peer client = world.connect("web.example.com", 80);
  const Peer other = world.connect("next.example.com", 80);
  std::string refused;
  world.run([&] {
    client.send(kGet);
    EXPECT_TRUE(client.read_until("ok").starts_with("HTTP/1.1 200"));
    change(world,
           "[[egress]]\nhost = \"next.example.com\"\nports = [80]\nmax_requests = 1\n"
           "[[egress]]\nhost = \"web.example.com\"\nports = [80]\nmax_requests = 1\n");
    other.send("GET / HTTP/1.1\r\nHost: next.example.com\r\n\r\n");
    EXPECT_TRUE(other.read_until("ok").starts_with("HTTP/1.1 200"));
    client.send(kGet);
    refused = client.read_until("}");
  });
  EXPECT_TRUE(refused.contains("max-requests")) << refused;
}

// An answer that is under way when its rule goes is cut off, so that nobody takes it for whole.
TEST_F(Change, AnAnswerUnderWayIsCutOff) {
  World world(kFirst);
  Upstream web([](const Peer& peer) {
    (void)peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin");
    (void)peer.read_some();
  });
  serve(world, "web.example.com", "93.184.216.36", 80, web);
  const Peer client = world.connect("web.example.com", 80);
  world.run([&] {
    client.send(kGet);
    EXPECT_TRUE(client.read_until("begin").ends_with("begin"));
    change(world, kOther);
    EXPECT_TRUE(client.was_reset());
  });
}

TEST_F(Change, NamesAreAnsweredByTheRulesInForce) {
  World world(kFirst);
  const auto known = [&](const std::string& name) {
    return policy::name_allowed(world.core().policy(), name);
  };
  EXPECT_TRUE(known("db.example.com"));
  world.run([&] { change(world, kOther); });
  EXPECT_FALSE(known("db.example.com"));
  EXPECT_TRUE(known("other.example.com"));
}

}  // namespace
}  // namespace gateway
