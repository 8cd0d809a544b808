// A capture namespace for a network stack that is not the kernel's own.
#include "priv/veth.h"

// Before the kernel's own headers, which then leave out what these define.
#include <net/if.h>
#include <netinet/in.h>

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "priv/netlink.h"

namespace priv {

namespace {

constexpr std::uint32_t kLoopback = 1;
constexpr std::uint16_t kMake = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
constexpr std::uint8_t kLinkBits = 30;  // own4 and gateway4 share a link

template <std::size_t N>
std::string_view text_of(const std::array<std::uint8_t, N>& address) {
  return {reinterpret_cast<const char*>(address.data()), N};
}

void up(NetlinkMessages& messages, std::uint32_t index) {
  ifinfomsg link = {};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = static_cast<int>(index);
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  messages.begin(RTM_NEWLINK, NLM_F_ACK, as_bytes(link));
  messages.end();
}

void append(std::string& bytes, std::uint16_t type, std::string_view value) {
  const rtattr head = {static_cast<std::uint16_t>(RTA_LENGTH(value.size())), type};
  bytes += as_bytes(head);
  bytes += value;
  bytes.resize(RTA_ALIGN(bytes.size()), '\0');
}

// What lies behind VETH_INFO_PEER: the other end, as a link of its own.
std::string peer(int capture) {
  ifinfomsg link = {};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = static_cast<int>(kPairIndex);
  std::string bytes(as_bytes(link));
  append(bytes, IFLA_IFNAME, std::string_view("cerco0\0", 7));
  append(bytes, IFLA_NET_NS_FD, as_bytes(capture));
  return bytes;
}

void make_pair(NetlinkMessages& messages, int capture) {
  ifinfomsg link = {};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = static_cast<int>(kPairIndex);
  messages.begin(RTM_NEWLINK, kMake, as_bytes(link));
  messages.text(IFLA_IFNAME, "eth0");
  messages.open(IFLA_LINKINFO);
  messages.text(IFLA_INFO_KIND, "veth");
  messages.open(IFLA_INFO_DATA);
  messages.attribute(VETH_INFO_PEER, peer(capture));
  messages.close();
  messages.close();
  messages.end();
}

void add_address(NetlinkMessages& messages, std::string_view address) {
  ifaddrmsg head = {};
  head.ifa_family = AF_INET;
  head.ifa_prefixlen = kLinkBits;
  head.ifa_index = kPairIndex;
  messages.begin(RTM_NEWADDR, kMake, as_bytes(head));
  messages.attribute(IFA_LOCAL, address);
  messages.attribute(IFA_ADDRESS, address);
  messages.end();
}

}  // namespace

std::string capturing_messages(const NamespaceNetwork& network) {
  NamespaceNetwork capturing = network;
  capturing.own4 = network.gateway4;
  capturing.own6 = network.gateway6;
  return interface_messages(capturing);
}

// The local table is asked first, and says of every address that it is local; a longer prefix in it
// goes before that.
std::string uplink_messages(const NamespaceNetwork& network) {
  NetlinkMessages messages;
  up(messages, kPairIndex);
  rtmsg head = {};
  head.rtm_family = AF_INET;
  head.rtm_dst_len = 32;
  head.rtm_table = RT_TABLE_LOCAL;
  head.rtm_protocol = RTPROT_STATIC;
  head.rtm_scope = RT_SCOPE_LINK;
  head.rtm_type = RTN_UNICAST;
  messages.begin(RTM_NEWROUTE, kMake, as_bytes(head));
  messages.attribute(RTA_DST, text_of(network.own4));
  messages.native(RTA_OIF, kPairIndex);
  messages.attribute(RTA_PREFSRC, text_of(network.gateway4));
  messages.end();
  return messages.bytes();
}

std::string pair_messages(const NamespaceNetwork& network, int capture) {
  NetlinkMessages messages;
  up(messages, kLoopback);
  make_pair(messages, capture);
  add_address(messages, text_of(network.own4));
  up(messages, kPairIndex);
  rtmsg head = {};
  head.rtm_family = AF_INET;
  head.rtm_table = RT_TABLE_MAIN;
  head.rtm_protocol = RTPROT_STATIC;
  head.rtm_scope = RT_SCOPE_UNIVERSE;
  head.rtm_type = RTN_UNICAST;
  messages.begin(RTM_NEWROUTE, kMake, as_bytes(head));
  messages.attribute(RTA_GATEWAY, text_of(network.gateway4));
  messages.native(RTA_OIF, kPairIndex);
  messages.end();
  return messages.bytes();
}

base::Status without_ipv6(Badge, const Inside& inside, int proc) {
  if (!inside.has(CLONE_NEWNET)) return base::system_error("disable_ipv6", EPERM);
  const base::Fd file(
      ::openat(proc, "sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY | O_CLOEXEC));
  if (!file.open() && errno == ENOENT) return {};  // a kernel that has none
  if (!file.open() || ::write(file.get(), "1", 1) != 1) return base::system_error("disable_ipv6");
  return {};
}

base::Result<base::Fd> second_network(Badge, const Inside& inside, int proc) {
  if (!inside.has(CLONE_NEWNET)) return base::system_error("second network", EPERM);
  base::Fd first(::openat(proc, "self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!first.open()) return base::system_error("open ns/net");
  if (::unshare(CLONE_NEWNET) != 0) return base::system_error("unshare the network");
  return first;
}

}  // namespace priv
