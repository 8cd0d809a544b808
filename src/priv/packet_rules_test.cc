// The packet rules: what nft says of them, and what becomes of packets.
#include "priv/packet_rules.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sched.h>

#include <string_view>

#include "priv/testing.h"

namespace {

using priv::testing::badge;
using priv::testing::inside;
using priv::testing::shell;

constexpr std::uint64_t kSpaces = CLONE_NEWNET | CLONE_NEWNS;

priv::NamespaceNetwork network() {
  priv::NamespaceNetwork made;
  ::inet_pton(AF_INET6, "fd63:6572:636f::2", made.own6.data());
  ::inet_pton(AF_INET6, "fd63:6572:636f::1", made.gateway6.data());
  return made;
}

priv::SteeredRange range(const char* prefix, unsigned bits, std::vector<std::uint16_t> ports) {
  priv::SteeredRange made;
  made.v6 = std::string_view(prefix).contains(':');
  ::inet_pton(made.v6 ? AF_INET6 : AF_INET, prefix, made.prefix.data());
  made.bits = bits;
  made.ports = std::move(ports);
  return made;
}

// The network as a sandbox gets it; the socket that the rules were set with.
base::Result<base::Fd> set_up(const priv::Inside& in,
                              const std::vector<priv::SteeredRange>& steered) {
  const base::Fd routes = TRY(priv::open_netlink(badge(), NETLINK_ROUTE));
  TRY(priv::transact(badge(), in, routes.get(), priv::interface_messages(network())));
  base::Fd rules = TRY(priv::open_netlink(badge(), NETLINK_NETFILTER));
  TRY(priv::transact(badge(), in, rules.get(), priv::capture_rules(network(), steered)));
  return rules;
}

TEST(PacketRules, AreWhatNftLists) {
  const std::string text = inside(kSpaces, [](const priv::Inside& in) -> base::Result<std::string> {
    TRY(set_up(in, {range("198.19.0.0", 16, {443, 80}), range("192.0.2.7", 32, {22}),
                    range("fd63:6572:636f:1::", 64, {443})}));
    return shell("nft list ruleset");
  });
  EXPECT_EQ(text, R"(table inet cerco {
	counter refused {
		packets 0 bytes 0
	}

	counter logged {
		packets 0 bytes 0
	}

	counter refused_ranges {
		packets 0 bytes 0
	}

	counter logged_ranges {
		packets 0 bytes 0
	}

	chain to_metadata {
		counter name "refused" counter name "refused_ranges" limit rate 100/second burst 200 packets counter name "logged" counter name "logged_ranges" log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject
	}

	chain to_private {
		counter name "refused" counter name "refused_ranges" limit rate 100/second burst 200 packets counter name "logged" counter name "logged_ranges" log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject
	}

	chain to_never {
		counter name "refused" counter name "refused_ranges" limit rate 100/second burst 200 packets counter name "logged" counter name "logged_ranges" log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject
	}

	chain to_elsewhere {
		counter name "refused" limit rate 100/second burst 200 packets counter name "logged" log group 1 snaplen 128 queue-threshold 1
		meta l4proto tcp reject with tcp reset
		reject
	}

	chain refuse_six {
		@nh,192,128 & 0xffffffffffff00000000000000000000 == 0xfd636572636f00000000000000000000 goto to_elsewhere
		@nh,192,128 & 0xffffffff000000000000000000000000 == 0xfd000ec2000000000000000000000000 goto to_metadata
		@nh,192,128 & 0xffffffff000000000000000000000000 == 0xfd2000ce000000000000000000000000 goto to_metadata
		@nh,192,128 & 0xffffffff000000000000000000000000 == 0xfd0000c1000000000000000000000000 goto to_metadata
		@nh,192,128 & 0xffffffff000000000000000000000000 == 0xfd00a9fe000000000000000000000000 goto to_metadata
		@nh,192,128 & 0xffffffff000000000000000000000000 == 0xfd000042000000000000000000000000 goto to_metadata
		@nh,192,128 & 0xffc00000000000000000000000000000 == 0xfe800000000000000000000000000000 goto to_metadata
		@nh,192,128 & 0xfe000000000000000000000000000000 == 0xfc000000000000000000000000000000 goto to_private
		@nh,192,128 & 0xfffffe00000000000000000000000000 == 0x20010000000000000000000000000000 goto to_never
		@nh,192,128 & 0xffffffff000000000000000000000000 == 0x20010db8000000000000000000000000 goto to_never
		@nh,192,128 & 0xffff0000000000000000000000000000 == 0x20020000000000000000000000000000 goto to_never
		@nh,192,128 & 0xffffffffffff00000000000000000000 == 0x2620004f800000000000000000000000 goto to_never
		@nh,192,128 & 0xffff0000000000000000000000000000 == 0x3ffe0000000000000000000000000000 goto to_never
		@nh,192,128 & 0xfffff000000000000000000000000000 == 0x3fff0000000000000000000000000000 goto to_never
		@nh,256,32 0x5efe goto to_never
		@nh,256,32 0x2005efe goto to_never
		@nh,192,128 & 0xe0000000000000000000000000000000 == 0x20000000000000000000000000000000 goto to_elsewhere
		goto to_never
	}

	chain refuse {
		tcp flags rst accept
		icmp type destination-unreachable accept
		icmpv6 type destination-unreachable accept
		tcp flags != syn / fin,syn,rst,ack reject with tcp reset
		meta nfproto ipv6 goto refuse_six
		@nh,128,32 & 0xffff0000 == 0xa9fe0000 goto to_metadata
		@nh,128,32 0xa83f8110 goto to_metadata
		@nh,128,32 0x646464c8 goto to_metadata
		@nh,128,32 0x64600060 goto to_metadata
		@nh,128,32 0xc00000c0 goto to_metadata
		@nh,128,32 & 0xff000000 == 0xa000000 goto to_private
		@nh,128,32 & 0xfff00000 == 0xac100000 goto to_private
		@nh,128,32 & 0xffff0000 == 0xc0a80000 goto to_private
		@nh,128,32 & 0xffc00000 == 0x64400000 goto to_private
		@nh,128,32 & 0xff000000 == 0x0 goto to_never
		@nh,128,32 & 0xff000000 == 0x7f000000 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc0000000 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc0000200 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc01fc400 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc034c100 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc0586300 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc0af3000 goto to_never
		@nh,128,32 & 0xffffff00 == 0xc6336400 goto to_never
		@nh,128,32 & 0xffffff00 == 0xcb007100 goto to_never
		@nh,128,32 & 0xe0000000 == 0xe0000000 goto to_never
		goto to_elsewhere
	}

	chain six {
		ip6 daddr ::1 accept
		ip6 daddr fd63:6572:636f::2 accept
		ip6 saddr != fd63:6572:636f::2 goto refuse
		ip6 daddr fd63:6572:636f:1::/64 tcp dport 443 tproxy ip6 to [fd63:6572:636f::1]:65533 accept
		meta nfproto ipv6 udp dport 53 tproxy ip6 to [fd63:6572:636f::1]:53 accept
		meta nfproto ipv6 tcp dport 53 tproxy ip6 to [fd63:6572:636f::1]:53 accept
		goto refuse
	}

	chain capture {
		type filter hook prerouting priority mangle; policy drop;
		meta nfproto ipv6 goto six
		ip daddr 127.0.0.0/8 accept
		ip daddr 198.18.0.2 accept
		ip saddr != 198.18.0.2 goto refuse
		ip daddr 198.19.0.0/16 tcp dport { 80, 443 } tproxy ip to 198.18.0.1:65533 accept
		ip daddr 192.0.2.7 tcp dport 22 tproxy ip to 198.18.0.1:65533 accept
		meta nfproto ipv4 udp dport 53 tproxy ip to 198.18.0.1:53 accept
		meta nfproto ipv4 tcp dport 53 tproxy ip to 198.18.0.1:53 accept
		goto refuse
	}
}
)");
}

// What is steered changes in one batch, and nothing else does.
TEST(PacketRules, AfterAChangeTheyAreThoseOfAFreshStart) {
  const std::vector<priv::SteeredRange> one = {range("198.19.0.0", 16, {443, 80}),
                                               range("fd63:6572:636f:1::", 64, {443})};
  const std::vector<priv::SteeredRange> other = {range("198.19.0.0", 16, {22, 8443, 9000}),
                                                 range("192.0.2.7", 32, {22})};
  for (const auto others : {priv::Public::refused, priv::Public::steered}) {
    const std::string changed =
        inside(kSpaces, [&](const priv::Inside& in) -> base::Result<std::string> {
          const base::Fd rules = TRY(set_up(in, one));
          TRY(priv::transact_from_outside(badge(), rules.get(),
                                          priv::steering_rules(network(), other, others)));
          return shell("nft list ruleset");
        });
    const std::string fresh =
        inside(kSpaces, [&](const priv::Inside& in) -> base::Result<std::string> {
          const base::Fd rules = TRY(set_up(in, {}));
          TRY(priv::transact_from_outside(badge(), rules.get(),
                                          priv::steering_rules(network(), {}, others)));
          TRY(priv::transact_from_outside(badge(), rules.get(),
                                          priv::steering_rules(network(), other, others)));
          return shell("nft list ruleset");
        });
    EXPECT_TRUE(changed.contains("22, 8443, 9000")) << changed;
    EXPECT_FALSE(changed.contains("{ 80, 443 }")) << changed;
    EXPECT_EQ(changed, fresh);
    if (others == priv::Public::steered) continue;
    const std::string started =
        inside(kSpaces, [&](const priv::Inside& in) -> base::Result<std::string> {
          TRY(set_up(in, other));
          return shell("nft list ruleset");
        });
    EXPECT_EQ(changed, started);
  }
}

TEST(PacketRules, InterfaceHasOwnAddressesAndEveryAddressIsLocal) {
  const std::string text = inside(kSpaces, [](const priv::Inside& in) -> base::Result<std::string> {
    TRY(set_up(in, {}));
    return shell(
        "ip -o addr | awk '{print $4}'; ip route show table local | grep default;"
        "ip -6 route show table local | grep default; ip route; ip link | grep -c mtu");
  });
  EXPECT_EQ(text,
            "127.0.0.1/8\n198.18.0.2/32\nfd63:6572:636f::2/128\n::1/128\n"
            "local default dev lo proto static scope host src 198.18.0.2 \n"
            "local default dev lo proto static src fd63:6572:636f::2 metric 1024 pref medium\n1\n");
}

}  // namespace
