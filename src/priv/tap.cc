// The card of a guest.
#include "priv/tap.h"

// Before the kernel's own headers, which then leave out what these define.
#include <net/if.h>
#include <netinet/in.h>

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "priv/netlink.h"

namespace priv {

namespace {

constexpr std::uint32_t kLoopback = 1;
constexpr std::uint16_t kMake = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
constexpr std::uint16_t kPut = NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK;
constexpr const char* kName = "guest";

template <std::size_t N>
std::string_view text_of(const std::array<std::uint8_t, N>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), N};
}

int family_of(std::string_view address) {
  return address.size() == 16 ? AF_INET6 : AF_INET;
}

void set_up(NetlinkMessages& messages, std::uint32_t index, std::string_view link_address) {
  ifinfomsg link = {};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = static_cast<int>(index);
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  messages.begin(RTM_NEWLINK, NLM_F_ACK, as_bytes(link));
  if (!link_address.empty()) messages.attribute(IFLA_ADDRESS, link_address);
  messages.end();
}

void add_neighbour(NetlinkMessages& messages, std::uint32_t index, std::string_view address,
                   std::string_view link_address) {
  ndmsg head = {};
  head.ndm_family = static_cast<std::uint8_t>(family_of(address));
  head.ndm_ifindex = static_cast<int>(index);
  head.ndm_state = NUD_PERMANENT;
  messages.begin(RTM_NEWNEIGH, kPut, as_bytes(head));
  messages.attribute(NDA_DST, address);
  messages.attribute(NDA_LLADDR, link_address);
  messages.end();
}

rtmsg route(int family, unsigned char table, unsigned char type, unsigned char scope) {
  rtmsg head = {};
  head.rtm_family = static_cast<std::uint8_t>(family);
  head.rtm_table = table;
  head.rtm_protocol = RTPROT_STATIC;
  head.rtm_scope = family == AF_INET ? scope : static_cast<unsigned char>(RT_SCOPE_UNIVERSE);
  head.rtm_type = type;
  return head;
}

void add_local_route(NetlinkMessages& messages, int family) {
  const rtmsg head = route(family, RT_TABLE_LOCAL, RTN_LOCAL, RT_SCOPE_HOST);
  messages.begin(RTM_NEWROUTE, kMake, as_bytes(head));
  messages.native(RTA_OIF, kLoopback);
  messages.end();
}

// In the table that is looked into first, where the route that makes all else local stands as well.
void add_guest_route(NetlinkMessages& messages, std::string_view address) {
  rtmsg head = route(family_of(address), RT_TABLE_LOCAL, RTN_UNICAST, RT_SCOPE_LINK);
  head.rtm_dst_len = static_cast<std::uint8_t>(address.size() * 8);
  messages.begin(RTM_NEWROUTE, kMake, as_bytes(head));
  messages.attribute(RTA_DST, address);
  messages.native(RTA_OIF, kTapIndex);
  messages.end();
}

void add_card_address(NetlinkMessages& messages, std::uint32_t index, std::string_view address) {
  ifaddrmsg head = {};
  head.ifa_family = static_cast<std::uint8_t>(family_of(address));
  head.ifa_prefixlen = static_cast<std::uint8_t>(address.size() * 8);
  head.ifa_flags = address.size() == 16 ? IFA_F_NODAD : 0;
  head.ifa_index = index;
  messages.begin(RTM_NEWADDR, kPut, as_bytes(head));
  messages.attribute(IFA_LOCAL, address);
  messages.attribute(IFA_ADDRESS, address);
  messages.end();
}

void add_default_route(NetlinkMessages& messages, std::uint32_t index, std::string_view gateway,
                       std::string_view source) {
  rtmsg head = route(family_of(gateway), RT_TABLE_MAIN, RTN_UNICAST, RT_SCOPE_UNIVERSE);
  head.rtm_flags = RTNH_F_ONLINK;
  messages.begin(RTM_NEWROUTE, kPut, as_bytes(head));
  messages.attribute(RTA_GATEWAY, gateway);
  messages.native(RTA_OIF, index);
  messages.attribute(RTA_PREFSRC, source);
  messages.end();
}

}  // namespace

std::string lonely_interface_messages() {
  NetlinkMessages messages;
  set_up(messages, kLoopback, {});
  add_local_route(messages, AF_INET);
  add_local_route(messages, AF_INET6);
  return messages.bytes();
}

std::string tap_messages(const NamespaceNetwork& network) {
  NetlinkMessages messages;
  set_up(messages, kTapIndex, text_of(kTapAddress));
  for (const std::string_view own : {text_of(network.own4), text_of(network.own6)}) {
    add_guest_route(messages, own);
    add_neighbour(messages, kTapIndex, own, text_of(kCardAddress));
  }
  return messages.bytes();
}

std::string card_messages(const NamespaceNetwork& network, std::uint32_t index) {
  NetlinkMessages messages;
  set_up(messages, kLoopback, {});
  set_up(messages, index, {});
  const std::pair<std::string_view, std::string_view> ways[] = {
      {text_of(network.own4), text_of(network.gateway4)},
      {text_of(network.own6), text_of(network.gateway6)}};
  for (const auto& [own, gateway] : ways) {
    add_card_address(messages, index, own);
    add_neighbour(messages, index, gateway, text_of(kTapAddress));
    add_default_route(messages, index, gateway, own);
  }
  return messages.bytes();
}

base::Result<base::Fd> make_tap(Badge, const Inside& inside) {
  if (!inside.has(CLONE_NEWNET)) return base::system_error("tap", EPERM);
  base::Fd tap(::open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!tap.open()) return base::system_error("open /dev/net/tun");
  const unsigned index = kTapIndex;
  if (::ioctl(tap.get(), TUNSETIFINDEX, &index) != 0) return base::system_error("TUNSETIFINDEX");
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, kName, sizeof request.ifr_name - 1);
  if (::ioctl(tap.get(), TUNSETIFF, &request) != 0) return base::system_error("TUNSETIFF");
  return tap;
}

}  // namespace priv
