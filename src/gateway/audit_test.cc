// network.mode = "audit": hosts, methods and paths are let go and told; the guard, denials and
// limits hold.
#include <gtest/gtest.h>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

constexpr const char* kPolicy = R"(
version = 1
[network]
mode = "audit"
[[egress]]
name = "api"
host = "api.example.org"
ports = [80]
methods = ["GET"]
paths = ["/v1/**"]
max_body = "1KiB"
[[egress]]
name = "raw"
tcp = "raw.example.org:7000"
[[deny]]
host = "denied.example.org"
)";

struct Server {
  Upstream upstream{[](const Peer& peer) {
    if (!peer.read_until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    }
  }};
};

class Audit : public ::testing::Test {
 protected:
  Audit() {
    for (const char* name : {"api.example.org", "other.test", "denied.example.org"}) {
      world.names[name] = {"93.184.216.34"};
    }
    world.names["inner.test"] = {"10.0.0.5"};
    world.listening["93.184.216.34:80"] = server.upstream.port();
    world.listening["10.0.0.5:80"] = server.upstream.port();
  }
  // The status, by capture and by the proxy, and one more decision for each.
  std::vector<std::string> ask(const std::string& host, const std::string& start,
                               const std::string& fields = "") {
    std::vector<std::string> codes;
    for (const bool proxy : {false, true}) {
      const Peer client = proxy ? world.connect(std::string(plan::kProxyAddress), plan::kProxyPort)
                                : world.connect(host, 80);
      const auto space = start.find(' ');
      const std::string line =
          proxy ? start.substr(0, space) + " http://" + host + start.substr(space + 1) : start;
      std::string answer;
      world.run([&] {
        client.send(line + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + fields +
                    "\r\n");
        answer = client.read_all();
      });
      codes.push_back(answer.size() > 12 ? answer.substr(9, 3) : answer);
    }
    return codes;
  }
  bool last(const std::string& text) {
    const auto decisions = world.decisions();
    return decisions[decisions.size() - 1].has(text) && decisions[decisions.size() - 2].has(text);
  }
  const std::vector<std::string> ok = {"200", "200"};
  const std::vector<std::string> no = {"403", "403"};
  Server server;
  World world{kPolicy};
};

TEST_F(Audit, WhatEnforceWouldRefuseGoesAndIsTold) {
  EXPECT_EQ(ask("api.example.org", "GET /v1/a"), ok);
  EXPECT_TRUE(last(R"("verdict":"allow")"));
  EXPECT_EQ(ask("api.example.org", "DELETE /v1/a"), ok);
  EXPECT_TRUE(last(R"("verdict":"audit","kind":"method")"));
  EXPECT_EQ(ask("api.example.org", "GET /v2/a"), ok);
  EXPECT_TRUE(last(R"("verdict":"audit","kind":"path")"));
  EXPECT_EQ(ask("other.test", "GET /"), ok);
  EXPECT_TRUE(last(R"("verdict":"audit","kind":"host")"));
  EXPECT_TRUE(last(R"("reason":"host")"));
  EXPECT_TRUE(last("\"fix\":"));
}

TEST_F(Audit, TheGuardDenialsAndLimitsHold) {
  EXPECT_EQ(ask("inner.test", "GET /"), no);
  EXPECT_TRUE(last(R"("verdict":"deny","kind":"range")"));
  EXPECT_EQ(ask("denied.example.org", "GET /"), no);
  EXPECT_TRUE(last(R"("verdict":"deny")"));
  EXPECT_EQ(ask("169.254.169.254", "GET /")[1], "403");
  EXPECT_EQ(ask("metadata.google.internal", "GET /")[1], "403");
  EXPECT_EQ(ask("api.example.org", "POST /v2/a", "Content-Length: 2048\r\n"), no);
  EXPECT_TRUE(last(R"("reason":"max-body")"));
  for (const std::string& where : world.dialled) EXPECT_EQ(where, "93.184.216.34:80");
}

TEST_F(Audit, ALookUpOfAnyNameIsToldAsWell) {
  std::string query("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12);
  query += std::string("\5other\4test\0\0\1\0\1", 16);
  const auto answer = world.dns().answer(query, 512);
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)[7], 1);
  const auto events = world.events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_TRUE(events[0].has(R"("verdict":"audit")")) << events[0].members;
  EXPECT_TRUE(events[0].has("other.test"));
  EXPECT_TRUE(world.asked.empty());
}

}  // namespace
}  // namespace gateway
