// Through the caller's proxy: what it is told, what it is not asked, and how its refusals are told.
#include "gateway/upstream_proxy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::TlsPeer;
using testing::Upstream;
using testing::World;

constexpr const char* kRules = R"(
[[egress]]
name = "raw"
tcp = "db.example.com:5432"
[[egress]]
name = "web"
host = "web.example.com"
ports = [80, 443]
methods = ["GET"]
[[egress]]
name = "inner"
tcp = "inner.example.com:5432"
addresses = ["10.2.0.0/16"]
[[egress]]
name = "own"
host = "host.cerco.internal"
ports = [8080]
methods = ["GET"]
)";

std::string policy_with(const std::string& proxy) {
  return "[network]\nupstream_proxy = { " + proxy + " }\n" + kRules;
}
const std::string kPlainProxy = "url = \"http://proxy.corp.test:3128\"";

// Answers CONNECT with `answer`, and sends back what comes then.
struct Proxy {
  explicit Proxy(std::string answered = "HTTP/1.1 200 OK\r\n\r\n", std::string first = "")
      : answer(std::move(answered)), greeting(std::move(first)) {}
  std::string answer;
  std::string greeting;  // of the other end, in one piece with the answer
  std::vector<std::string> asked;
  Upstream upstream{[this](const Peer& peer) {
    asked.push_back(peer.read_until("\r\n\r\n"));
    if (asked.back().empty()) return;
    peer.send(answer + greeting);
    while (true) {
      const std::string some = peer.read_some();
      if (some.empty()) return;
      peer.send(some.starts_with("GET ") ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" : some);
    }
  }};
};

class UpstreamProxyTest : public ::testing::Test {
 protected:
  static void prepare(World& world, const Upstream& proxy) {
    world.names["proxy.corp.test"] = {"10.0.0.9"};
    world.names["db.example.com"] = {"93.184.216.34"};
    world.names["web.example.com"] = {"93.184.216.35"};
    world.names["inner.example.com"] = {"10.2.3.4"};
    world.listening["10.0.0.9:3128"] = proxy.port();
  }
};

TEST_F(UpstreamProxyTest, IsAskedForTheAddressThatPassedAndNeverForAName) {
  Proxy proxy("HTTP/1.1 200 Connection established\r\nX-Via: a\r\n\r\n", "SSH-2.0-first\r\n");
  World world(policy_with(kPlainProxy));
  prepare(world, proxy.upstream);
  const Peer client = world.connect("db.example.com", 5432);
  world.run([&] {
    EXPECT_EQ(client.read_until("\n"), "SSH-2.0-first\r\n");  // not a byte of it is lost
    client.send("ping");
    EXPECT_EQ(client.read_exactly(4), "ping");
    client.finish_sending();
  });
  ASSERT_EQ(proxy.asked.size(), 1U);
  EXPECT_EQ(proxy.asked[0],
            "CONNECT 93.184.216.34:5432 HTTP/1.1\r\nHost: 93.184.216.34:5432\r\n\r\n");
  EXPECT_EQ(world.dialled, std::vector<std::string>{"10.0.0.9:3128"});
  EXPECT_TRUE(world.decisions()[0].has(R"("address":"93.184.216.34")"));
}

TEST_F(UpstreamProxyTest, PlainRequestsGoByConnectToo) {
  Proxy proxy;
  World world(policy_with(kPlainProxy + ", auth = { user = \"ci\", env = \"P\" }"));
  world.proxy_password = "p-secret";
  prepare(world, proxy.upstream);
  const Peer client = world.connect("web.example.com", 80);
  world.run([&] {
    client.send("GET / HTTP/1.1\r\nHost: web.example.com\r\n\r\n");
    EXPECT_TRUE(client.read_until("ok").starts_with("HTTP/1.1 200"));
  });
  ASSERT_EQ(proxy.asked.size(), 1U);
  EXPECT_TRUE(proxy.asked[0].starts_with("CONNECT 93.184.216.35:80 ")) << proxy.asked[0];
  EXPECT_TRUE(proxy.asked[0].contains("Proxy-Authorization: Basic Y2k6cC1zZWNyZXQ=\r\n"));
  EXPECT_FALSE(proxy.asked[0].contains("web.example.com"));
}

TEST_F(UpstreamProxyTest, ExceptionsAndTheHostsOwnServicesAreReachedDirectly) {
  Proxy proxy;
  Proxy direct;
  struct Row {
    const char* exception;
    const char* host;
    std::uint16_t port;
    const char* dialled;
  };
  const Row rows[] = {{"db.example.com", "db.example.com", 5432, "93.184.216.34:5432"},
                      {".example.com", "db.example.com", 5432, "93.184.216.34:5432"},
                      {"93.184.216.0/24", "db.example.com", 5432, "93.184.216.34:5432"},
                      {"10.2.3.4", "inner.example.com", 5432, "10.2.3.4:5432"},
                      {"xdb.example.com", "db.example.com", 5432, "10.0.0.9:3128"},
                      {"b.example.com", "db.example.com", 5432, "10.0.0.9:3128"},
                      {"other.test", "host.cerco.internal", 8080, "127.0.0.1:8080"}};
  for (const Row& row : rows) {
    World world(policy_with(kPlainProxy + ", no_proxy = [\"" + row.exception + "\"]"));
    prepare(world, proxy.upstream);
    world.listening[row.dialled] = direct.upstream.port();
    const Peer client = world.connect(row.host, row.port);
    world.run([&] {
      client.send("GET / HTTP/1.1\r\nHost: host.cerco.internal:8080\r\n\r\n");
      EXPECT_FALSE(client.read_some().empty()) << row.exception;
    });
    ASSERT_EQ(world.dialled.size(), 1U) << row.exception;
    EXPECT_EQ(world.dialled[0], row.dialled) << row.exception;
  }
}

// The proxy would dial anything; what may be asked of it is judged as before.
TEST_F(UpstreamProxyTest, TheGuardHoldsForWhatItIsAskedFor) {
  Proxy proxy;
  World world(policy_with(kPlainProxy));
  prepare(world, proxy.upstream);
  world.names["db.example.com"] = {"169.254.169.254"};
  world.names["inner.example.com"] = {"10.3.0.1"};
  const Peer rebound = world.connect("db.example.com", 5432);
  const Peer range = world.connect("inner.example.com", 5432);
  const Peer itself = world.connect("10.0.0.9", 3128);
  world.run([&] {
    for (const Peer* peer : {&rebound, &range, &itself}) EXPECT_EQ(peer->read_some(), "");
  });
  EXPECT_TRUE(world.dialled.empty());
  const auto decisions = world.decisions();
  EXPECT_EQ(decisions.size(), 3U);
  for (const auto& decision : decisions) EXPECT_TRUE(decision.has(R"("verdict":"deny")"));
}

TEST_F(UpstreamProxyTest, WhatItCannotDoIsToldTruly) {
  struct Row {
    const char* answer;  // "": it says nothing
    const char* problem;
  };
  const Row rows[] = {{"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "proxy-auth"},
                      {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "proxy-refused"},
                      {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "proxy-refused"},
                      {"SSH-2.0-OpenSSH\r\n\r\n", "proxy-answer"},
                      {"HTTP/1.1 200 OK\nX: y\n\n", "proxy-answer"},
                      {"", "proxy-timeout"}};
  for (const Row& row : rows) {
    Proxy proxy(row.answer);
    World world(policy_with(kPlainProxy));
    if (*row.answer == '\0') {
      world.limits.connect = std::chrono::milliseconds(100);
      world.limits.handshake = std::chrono::milliseconds(100);
    }
    prepare(world, proxy.upstream);
    const Peer client = world.connect("web.example.com", 80);
    std::string answer;
    world.run([&] {
      client.send("GET / HTTP/1.1\r\nHost: web.example.com\r\n\r\n");
      answer = client.read_until("}");
    });
    const auto events = world.events();
    const std::string problem = R"("problem":")" + std::string(row.problem) + '"';
    EXPECT_TRUE(std::ranges::any_of(events, [&](const auto& e) { return e.has(problem); }))
        << row.answer << answer;
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 502")) << answer;
    EXPECT_TRUE(answer.contains(row.problem)) << answer;
  }
}

TEST_F(UpstreamProxyTest, OneThatIsNotThereOrHasNoAddressIsToldApart) {
  for (const bool named : {true, false}) {
    Proxy proxy;
    World world(policy_with(kPlainProxy));
    prepare(world, proxy.upstream);
    world.listening.clear();
    if (!named) world.names.erase("proxy.corp.test");
    const Peer client = world.connect("web.example.com", 80);
    std::string answer;
    world.run([&] {
      client.send("GET / HTTP/1.1\r\nHost: web.example.com\r\n\r\n");
      answer = client.read_until("}");
    });
    EXPECT_TRUE(answer.contains(named ? "proxy-unreachable" : "proxy-name")) << answer;
  }
}

TEST_F(UpstreamProxyTest, AnotherAddressIsTriedWhereItCannotReachOne) {
  std::vector<std::string> asked;
  Upstream proxy([&](const Peer& peer) {
    asked.push_back(peer.read_until("\r\n\r\n"));
    const bool second = asked.back().starts_with("CONNECT 93.184.216.36:");
    peer.send(second ? "HTTP/1.1 200 OK\r\n\r\nhi" : "HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  World world(policy_with(kPlainProxy));
  prepare(world, proxy);
  world.names["db.example.com"] = {"93.184.216.34", "93.184.216.36"};
  const Peer client = world.connect("db.example.com", 5432);
  world.run([&] { EXPECT_EQ(client.read_exactly(2), "hi"); });
  EXPECT_EQ(asked.size(), 2U);
}

std::int64_t now() {
  return std::time(nullptr);
}

// Its certificate is judged by the roots of network.ca and the host; TLS within that TLS is tried
// end to end.
TEST_F(UpstreamProxyTest, TlsToTheProxyItself) {
  http::Authority outside = std::move(*http::Authority::make("outside", 3600, now));
  http::Authority stranger = std::move(*http::Authority::make("stranger", 3600, now));
  http::Authority inside = std::move(*http::Authority::make("inside", 3600, now));
  for (const bool trusted : {true, false}) {
    std::string asked;
    const auto proxy_context = *(trusted ? outside : stranger).server_context("proxy.corp.test");
    Upstream proxy([&](const Peer& peer) {
      const TlsPeer tls(peer, proxy_context, TlsPeer::Side::server, "");
      asked = tls.read_until("\r\n\r\n");
      if (asked.empty()) return;
      tls.send("HTTP/1.1 200 OK\r\n\r\nhi");
      tls.send(tls.read_some());
    });
    World world(policy_with("url = \"https://proxy.corp.test:3128\""));
    world.roots = outside.pem();
    world.authority = &inside;
    prepare(world, proxy);
    const Peer client = world.connect("db.example.com", 5432);
    world.run([&] {
      EXPECT_EQ(client.read_exactly(2), trusted ? "hi" : "");
      if (!trusted) return;
      client.send("more");
      EXPECT_EQ(client.read_exactly(4), "more");
    });
    EXPECT_EQ(asked.starts_with("CONNECT 93.184.216.34:5432"), trusted);
    const auto events = world.events();
    EXPECT_EQ(std::ranges::any_of(events, [](const auto& e) { return e.has("proxy-certificate"); }),
              !trusted);
  }
}

}  // namespace
}  // namespace gateway
