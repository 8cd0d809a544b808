// NAT64 prefixes: learned from the one name whose addresses are known, and what lies below them.
#include "gateway/nat64.h"

#include <gtest/gtest.h>

#include "gateway/testing.h"

namespace gateway {
namespace {

using testing::Peer;
using testing::Upstream;
using testing::World;

policy::Address address(const std::string& text) {
  return *policy::parse_address(text);
}

// The table of RFC 6052 section 2.4, with 192.0.0.170 and 192.0.0.171 put in.
TEST(Nat64, PrefixesOfEveryLength) {
  struct Row {
    std::string answer;
    std::string prefix;
    std::string carries;  // 10.0.0.5 below the prefix
  };
  const Row rows[] = {
      {"2a01:b000:c000:aa::", "2a01:b000::/32", "2a01:b000:a00:5::"},
      {"2a01:b000:1c0:0:aa::", "2a01:b000:100::/40", "2a01:b000:10a:0:5::"},
      {"2a01:b000:122:c000:0:aa00::", "2a01:b000:122::/48", "2a01:b000:122:a00:0:500::"},
      {"2a01:b000:122:3c0:0:aa::", "2a01:b000:122:300::/56", "2a01:b000:122:30a:0:5::"},
      {"2a01:b000:122:344:c0:0:aa00::", "2a01:b000:122:344::/64", "2a01:b000:122:344:a:0:500::"},
      {"2a01:b000:122:344::c000:aa", "2a01:b000:122:344::/96", "2a01:b000:122:344::a00:5"},
      {"64:ff9b::c000:ab", "64:ff9b::/96", "64:ff9b::10.0.0.5"}};
  for (const Row& row : rows) {
    const policy::Address answers[] = {address(row.answer)};
    const auto prefixes = nat64_prefixes(answers);
    ASSERT_EQ(prefixes.size(), 1U) << row.prefix;
    EXPECT_EQ(policy::to_string(prefixes[0]), row.prefix);
    const auto inner = carried_v4(prefixes[0], address(row.carries));
    ASSERT_TRUE(inner) << row.prefix;
    EXPECT_EQ(policy::to_string(*inner), "10.0.0.5");
  }
  const policy::Address others[] = {address("2606:2800:220:1::34"), address("192.0.0.170")};
  EXPECT_TRUE(nat64_prefixes(others).empty());
  EXPECT_FALSE(carried_v4(*policy::parse_cidr("64:ff9b::/96"), address("2606:2800::1")));
}

class Nat64World : public ::testing::Test {
 protected:
  Nat64World() {
    world.names[kNat64Name] = {"192.0.0.170", "2a01:b000:122:344::c000:aa"};
    world.names["six.example.com"] = {"2a01:b000:122:344::5db8:d822"};  // 93.184.216.34
    world.names["inner.example.com"] = {"2a01:b000:122:344::a00:5"};    // 10.0.0.5
    world.names["meta.example.com"] = {"2a01:b000:122:344::a9fe:a9fe"};
    world.names["known.example.com"] = {"64:ff9b::5db8:d822"};
    world.names["plain.example.com"] = {"2606:2800:220:1::34"};
    for (const char* to :
         {"2a01:b000:122:344::5db8:d822", "2a01:b000:122:344::a00:5",
          "2a01:b000:122:344::a9fe:a9fe", "64:ff9b::5db8:d822", "2606:2800:220:1::34"}) {
      world.listening[to + std::string(":80")] = upstream.port();
    }
  }
  std::string ask(const std::string& name) {
    const Peer client = world.connect(name, 80);
    std::string answer;
    world.run([&] {
      client.send("GET / HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n");
      answer = client.read_all();
    });
    return answer.substr(9, 3);
  }
  Upstream upstream{[](const Peer& peer) {
    if (!peer.read_until("\r\n\r\n").empty()) {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }
  }};
  World world{"version = 1\n[[egress]]\nhost = \"*.example.com\"\nports = [80]\n"};
};

// N86
TEST_F(Nat64World, WhatATranslatorReachesIsJudgedAsWhatItReaches) {
  EXPECT_EQ(ask("six.example.com"), "200");
  EXPECT_EQ(ask("plain.example.com"), "200");
  EXPECT_EQ(ask("inner.example.com"), "403");
  EXPECT_EQ(ask("meta.example.com"), "403");
  EXPECT_EQ(world.dialled.size(), 2U);
  const auto decisions = world.decisions();
  ASSERT_EQ(decisions.size(), 4U);
  EXPECT_TRUE(decisions[2].has(R"("reason":"private")")) << decisions[2].members;
  EXPECT_TRUE(decisions[3].has(R"("reason":"metadata")")) << decisions[3].members;
  // Asked once, and only because a name had an IPv6 address.
  EXPECT_EQ(std::ranges::count(world.asked, kNat64Name), 1);
  // Without a translator of this network that prefix leads nobody knows where.
  EXPECT_EQ(ask("known.example.com"), "403");
}

TEST_F(Nat64World, TheWellKnownPrefixIsOpenWhereTheNetworkHasIt) {
  world.names[kNat64Name] = {"192.0.0.170", "64:ff9b::c000:aa"};
  EXPECT_EQ(ask("known.example.com"), "200");
}

TEST_F(Nat64World, WithoutAnAnswerNoIpv6AddressIsDialled) {
  world.names.erase(kNat64Name);
  EXPECT_EQ(ask("plain.example.com"), "200") << "there is no translator";
  World other{"version = 1\n[[egress]]\nhost = \"*.example.com\"\nports = [80]\n"};
  other.names = world.names;
  other.names["both.example.com"] = {"2606:2800:220:1::34", "93.184.216.34"};
  other.broken = {kNat64Name};
  const Peer client = other.connect("plain.example.com", 80);
  std::string answer;
  other.run([&] {
    client.send("GET / HTTP/1.1\r\nHost: plain.example.com\r\nConnection: close\r\n\r\n");
    answer = client.read_all();
  });
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502 ")) << answer;
  EXPECT_TRUE(other.dialled.empty());
}

}  // namespace
}  // namespace gateway
