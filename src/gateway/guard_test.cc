// The address guard: what only this host can know, and what a rule may open.
#include "gateway/guard.h"

#include <gtest/gtest.h>

namespace gateway {
namespace {

constexpr const char* kPolicy = R"(
version = 1
[[egress]]
name = "open"
host = "api.example.com"
[[egress]]
name = "inner"
host = "inner.example.com"
addresses = ["10.2.0.0/16", "203.0.0.0/8", "fd00:1::/32"]
[[egress]]
name = "net"
cidr = "10.9.0.0/24"
ports = [443]
[[egress]]
name = "own"
host = "host.cerco.internal"
ports = [8080]
[[deny]]
cidr = "93.184.217.0/24"
[[deny]]
cidr = "10.2.8.0/24"
[[deny]]
cidr = "2606:4700:4700::/48"
[[deny]]
cidr = "127.0.0.1"
ports = [8081]
[[deny]]
cidr = "9.9.9.9"
ports = [80]
)";

os::Network network(const std::string& text) {
  const auto cidr = *policy::parse_cidr(text);
  return {.v6 = cidr.address.v6, .address = cidr.address.bytes, .bits = cidr.bits};
}

class GuardTest : public ::testing::Test {
 protected:
  GuardTest() {
    plan_.policy = policy::parse(kPolicy, "t", {}, {.cpus_milli = 1000, .memory = 1 << 30})->policy;
    for (int i = 0; i <= static_cast<int>(plan::Protection::last_); ++i) {
      plan_.protections.insert(static_cast<plan::Protection>(i));
    }
    local_.own = {network("203.0.114.7/32"), network("10.2.0.9/32"), network("2600:1::7/128")};
    local_.attached = {network("203.0.114.0/24"), network("10.2.0.0/24"), network("2600:1::/64")};
  }
  // "pass", or the reason.
  std::string judge(const std::string& address, const std::string& rule = "open",
                    const std::string& host = "api.example.com", std::uint16_t port = 443) {
    const policy::Egress* found = nullptr;
    for (const auto& one : plan_.policy.egress) {
      if (one.name == rule) found = &one;
    }
    const Guard guard(plan_,
                      [this]() -> base::Result<const os::LocalNetworks*> { return &local_; });
    const auto parsed = policy::parse_address(address);
    if (!parsed) return "malformed";
    const policy::Address addresses[] = {*parsed};
    const auto vetted = guard.vet(found, {.name = host}, port, addresses);
    return vetted->passed.empty() ? vetted->reason : "pass";
  }
  plan::Plan plan_;
  os::LocalNetworks local_;
};

TEST_F(GuardTest, PublicAddressesPass) {
  for (const char* good : {"93.184.216.34", "1.1.1.1", "2606:4700::1111"})
    EXPECT_EQ(judge(good), "pass");
}

// N1 N7 N15 N16 N17 N19 N20 N21 N22 N25 N26 N85, F8
TEST_F(GuardTest, SpecialAddressesNeverPass) {
  for (const char* bad : {"169.254.169.254",
                          "127.0.0.1",
                          "0.0.0.0",
                          "0.1.2.3",
                          "::1",
                          "::",
                          "::ffff:169.254.169.254",
                          "::ffff:127.0.0.1",
                          "::169.254.169.254",
                          "64:ff9b::a9fe:a9fe",
                          "64:ff9b:1::a9fe:a9fe",
                          "2002:a9fe:a9fe::1",
                          "2001:0:1:1:0:0:5601:5601",
                          "2001:db8::5efe:a9fe:a9fe",
                          "fe80::5efe:a00:1",
                          "fd00:ec2::254",
                          "fd20:ce::254",
                          "fe80::a9fe:a9fe",
                          "ff02::1",
                          "224.0.0.251",
                          "255.255.255.255",
                          "240.0.0.1",
                          "168.63.129.16",
                          "192.0.0.192",
                          "100.100.100.200",
                          "198.18.0.1",
                          "192.0.2.1"}) {
    EXPECT_NE(judge(bad), "pass") << bad;
    EXPECT_NE(judge(bad, "inner"), "pass") << bad;
  }
}

TEST_F(GuardTest, PrivateAddressesPassOnlyWhereARuleOpensThem) {
  EXPECT_NE(judge("10.2.7.7"), "pass");
  EXPECT_EQ(judge("10.2.7.7", "inner"), "pass");
  EXPECT_NE(judge("10.3.0.1", "inner"), "pass");
  EXPECT_EQ(judge("10.9.0.3", "net", "10.9.0.3"), "pass");
  EXPECT_NE(judge("10.9.1.3", "net", "10.9.1.3"), "pass");
  EXPECT_EQ(judge("fd00:1::5", "inner"), "pass");
}

// N29 N30, F29
TEST_F(GuardTest, ThisHostsAddressesPassForNoRule) {
  EXPECT_EQ(judge("203.0.114.7"), "own-address");
  EXPECT_EQ(judge("203.0.114.7", "inner"), "own-address");
  EXPECT_EQ(judge("10.2.0.9", "inner"), "own-address");
  EXPECT_EQ(judge("2600:1::7"), "own-address");
  EXPECT_NE(judge("::ffff:203.0.114.7"), "pass");
}

TEST_F(GuardTest, AttachedNetworksPassWhereARuleOpensThem) {
  EXPECT_EQ(judge("203.0.114.8"), "attached-network");
  EXPECT_EQ(judge("203.0.114.8", "inner"), "pass");
  EXPECT_EQ(judge("2600:1::8"), "attached-network");
}

TEST_F(GuardTest, OneNameReachesTheLoopback) {
  EXPECT_EQ(judge("127.0.0.1", "own", "host.cerco.internal"), "pass");
  EXPECT_EQ(judge("::1", "own", "host.cerco.internal"), "pass");
  EXPECT_NE(judge("93.184.216.34", "own", "host.cerco.internal"), "pass");
  EXPECT_NE(judge("127.0.0.1", "own", "api.example.com"), "pass");
}

// A denial binds what names lead to as well, also where a rule opens the range, and the host's own.
TEST_F(GuardTest, DeniedAddressesPassForNoRule) {
  EXPECT_EQ(judge("93.184.217.1"), "deny-rule");
  EXPECT_EQ(judge("93.184.216.255"), "pass");
  EXPECT_EQ(judge("10.2.8.1", "inner"), "deny-rule");
  EXPECT_EQ(judge("10.2.9.1", "inner"), "pass");
  EXPECT_EQ(judge("2606:4700:4700::1111"), "deny-rule");
  EXPECT_EQ(judge("9.9.9.9"), "pass");
  EXPECT_EQ(judge("9.9.9.9", "open", "api.example.com", 80), "deny-rule");
  EXPECT_EQ(judge("127.0.0.1", "own", "host.cerco.internal", 8081), "deny-rule");
  EXPECT_EQ(judge("127.0.0.1", "own", "host.cerco.internal", 8080), "pass");
}

TEST_F(GuardTest, OfAMixedAnswerTheGoodOnesPassIPv4First) {
  const Guard guard(plan_, [this]() -> base::Result<const os::LocalNetworks*> { return &local_; });
  const policy::Address addresses[] = {
      *policy::parse_address("2606:4700::1"), *policy::parse_address("10.0.0.5"),
      *policy::parse_address("93.184.216.34"), *policy::parse_address("::ffff:10.0.0.1")};
  const auto vetted =
      guard.vet(&plan_.policy.egress[0], {.name = "api.example.com"}, 443, addresses);
  ASSERT_EQ(vetted->passed.size(), 2U);
  EXPECT_EQ(policy::to_string(vetted->passed[0].address()), "93.184.216.34");
  EXPECT_TRUE(vetted->mixed());
  EXPECT_EQ(vetted->refused, "10.0.0.5");
}

TEST_F(GuardTest, WhenTheHostCannotBeReadNothingPasses) {
  const Guard guard(plan_, []() -> base::Result<const os::LocalNetworks*> {
    return base::system_error("rtnetlink", ENOBUFS);
  });
  const policy::Address addresses[] = {*policy::parse_address("93.184.216.34")};
  EXPECT_FALSE(guard.vet(nullptr, {.name = "api.example.com"}, 443, addresses));
}

// The control: without the guard all of them pass.
TEST_F(GuardTest, WithoutTheGuardEverythingPasses) {
  plan_.protections.erase(plan::Protection::address_guard);
  for (const char* bad : {"169.254.169.254", "127.0.0.1", "10.2.0.9", "203.0.114.7"}) {
    EXPECT_EQ(judge(bad), "pass") << bad;
  }
}

TEST(Interfaces, KnowsTheLoopback) {
  auto interfaces = os::Interfaces::open();
  ASSERT_TRUE(interfaces);
  const auto now = interfaces->now();
  ASSERT_TRUE(now);
  const auto loopback = *policy::parse_address("127.0.0.1");
  bool found = false;
  for (const auto& own : (*now)->own) {
    found =
        found || policy::contains(
                     {.address = {.v6 = own.v6, .bytes = own.address}, .bits = own.bits}, loopback);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace gateway
