// The inside of a sandbox's network namespace.
#include "priv/network.h"

// Before the kernel's own headers, which then leave out what these define.
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "priv/netlink.h"
#include "priv/packet_rules.h"

namespace priv {

namespace {

constexpr std::uint32_t kLoopback = 1;  // index of lo in every network namespace
constexpr std::uint16_t kMake = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
constexpr int kBacklog = 1024;
constexpr int kLogBuffer = 1 << 20;

template <std::size_t N>
std::string_view text_of(const std::array<std::uint8_t, N>& address) {
  return {reinterpret_cast<const char*>(address.data()), N};
}

void add_address(NetlinkMessages& messages, int family, std::string_view address) {
  ifaddrmsg head = {};
  head.ifa_family = static_cast<std::uint8_t>(family);
  head.ifa_prefixlen = static_cast<std::uint8_t>(address.size() * 8);
  head.ifa_flags = family == AF_INET6 ? IFA_F_NODAD : 0;
  head.ifa_index = kLoopback;
  messages.begin(RTM_NEWADDR, kMake, as_bytes(head));
  messages.attribute(IFA_LOCAL, address);
  messages.attribute(IFA_ADDRESS, address);
  messages.end();
}

// Everything that has no more specific route is local, with `source` where a socket has none.
void add_route(NetlinkMessages& messages, int family, std::string_view source) {
  rtmsg head = {};
  head.rtm_family = static_cast<std::uint8_t>(family);
  head.rtm_table = RT_TABLE_LOCAL;
  head.rtm_protocol = RTPROT_STATIC;
  head.rtm_scope = family == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  head.rtm_type = RTN_LOCAL;
  messages.begin(RTM_NEWROUTE, kMake, as_bytes(head));
  messages.native(RTA_OIF, kLoopback);
  messages.attribute(RTA_PREFSRC, source);
  messages.end();
}

base::Status turn_on(int socket, int level, int option, const char* what) {
  const int on = 1;
  if (::setsockopt(socket, level, option, &on, sizeof on) != 0) return base::system_error(what);
  return {};
}

base::Status bind_to(int socket, const std::array<std::uint8_t, 4>& address, std::uint16_t port) {
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  std::memcpy(&at.sin_addr, address.data(), address.size());
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return base::system_error(fmt::format("bind port {}", port));
  }
  return {};
}

base::Status bind_to(int socket, const std::array<std::uint8_t, 16>& address, std::uint16_t port) {
  sockaddr_in6 at = {};
  at.sin6_family = AF_INET6;
  at.sin6_port = htons(port);
  std::memcpy(&at.sin6_addr, address.data(), address.size());
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return base::system_error(fmt::format("bind port {} of IPv6", port));
  }
  return {};
}

template <std::size_t N>
base::Result<base::Fd> open_socket(int type, const std::array<std::uint8_t, N>& address,
                                   std::uint16_t port) {
  constexpr bool v6 = N == 16;
  base::Fd socket(::socket(v6 ? AF_INET6 : AF_INET, type | SOCK_CLOEXEC, 0));
  if (!socket.open()) return base::system_error(v6 ? "socket of IPv6" : "socket");
  // Without this option a packet rule cannot hand over what was sent to another address.
  if (v6) {
    TRY(turn_on(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY"));
    TRY(turn_on(socket.get(), IPPROTO_IPV6, IPV6_TRANSPARENT, "IPV6_TRANSPARENT"));
  } else {
    TRY(turn_on(socket.get(), IPPROTO_IP, IP_TRANSPARENT, "IP_TRANSPARENT"));
  }
  if (type == SOCK_DGRAM) {
    TRY(turn_on(socket.get(), v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO,
                "PKTINFO"));
  }
  TRY(bind_to(socket.get(), address, port));
  if (type == SOCK_STREAM && ::listen(socket.get(), kBacklog) != 0) {
    return base::system_error("listen");
  }
  return socket;
}

// Subscribes to the log group: headers and the first bytes of each packet, at once.
base::Result<base::Fd> open_refusal_log(Badge badge, const Inside& inside) {
  base::Fd socket = TRY(open_netlink(badge, NETLINK_NETFILTER));
  // Static: this runs between clone and exec.
  struct Message {
    nlmsghdr head;
    nfgenmsg group;
    nlattr attribute;
    std::uint8_t value[8];
  };
  constexpr auto kConfig = static_cast<std::uint16_t>((NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG);
  Message bind = {};
  bind.head = {NLMSG_LENGTH(sizeof(nfgenmsg)) + 8, kConfig, NLM_F_REQUEST | NLM_F_ACK, 1, 0};
  bind.group = {AF_UNSPEC, NFNETLINK_V0, htons(kRefusalGroup)};
  bind.attribute = {5, NFULA_CFG_CMD};
  bind.value[0] = NFULNL_CFG_CMD_BIND;
  TRY_IN("netfilter log", transact(badge, inside, socket.get(),
                                   {reinterpret_cast<const char*>(&bind), bind.head.nlmsg_len}));
  Message mode = bind;
  mode.head.nlmsg_len = NLMSG_LENGTH(sizeof(nfgenmsg)) + 12;
  mode.attribute = {4 + sizeof(nfulnl_msg_config_mode), NFULA_CFG_MODE};
  const nfulnl_msg_config_mode copy = {htonl(kLoggedBytes), NFULNL_COPY_PACKET, 0};
  std::memcpy(mode.value, &copy, sizeof copy);
  TRY_IN("netfilter log", transact(badge, inside, socket.get(),
                                   {reinterpret_cast<const char*>(&mode), mode.head.nlmsg_len}));
  // A full buffer loses notices, never the count: the reader need not see ENOBUFS.
  TRY(turn_on(socket.get(), SOL_NETLINK, NETLINK_NO_ENOBUFS, "NETLINK_NO_ENOBUFS"));
  // Past net.core.rmem_max by a right over the host, and up to it without.
  for (const int option : {SO_RCVBUFFORCE, SO_RCVBUF}) {
    if (::setsockopt(socket.get(), SOL_SOCKET, option, &kLogBuffer, sizeof kLogBuffer) == 0) {
      return socket;
    }
  }
  return base::system_error("SO_RCVBUF");
}

}  // namespace

std::string interface_messages(const NamespaceNetwork& network) {
  NetlinkMessages messages;
  ifinfomsg link = {};
  link.ifi_family = AF_UNSPEC;
  link.ifi_index = kLoopback;
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  messages.begin(RTM_NEWLINK, NLM_F_ACK, as_bytes(link));
  messages.end();
  add_address(messages, AF_INET, text_of(network.own4));
  add_address(messages, AF_INET6, text_of(network.own6));
  add_route(messages, AF_INET, text_of(network.own4));
  add_route(messages, AF_INET6, text_of(network.own6));
  return messages.bytes();
}

base::Status free_low_ports(Badge, const Inside& inside, int proc) {
  if (!inside.has(CLONE_NEWNET)) return base::system_error("ip_unprivileged_port_start", EPERM);
  const base::Fd file(
      ::openat(proc, "sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC));
  if (!file.open() || ::write(file.get(), "0", 1) != 1) {
    return base::system_error("ip_unprivileged_port_start");
  }
  return {};
}

base::Result<CatchingSockets> open_catching_sockets(Badge badge, const Inside& inside,
                                                    const NamespaceNetwork& network) {
  if (!inside.has(CLONE_NEWNET)) return base::system_error("capture sockets", EPERM);
  CatchingSockets sockets;
  sockets.tcp4 = TRY(open_socket(SOCK_STREAM, network.gateway4, kCapturePort));
  sockets.tcp6 = TRY(open_socket(SOCK_STREAM, network.gateway6, kCapturePort));
  sockets.dns4 = TRY(open_socket(SOCK_DGRAM, network.gateway4, kDnsPort));
  sockets.dns6 = TRY(open_socket(SOCK_DGRAM, network.gateway6, kDnsPort));
  sockets.dns_tcp4 = TRY(open_socket(SOCK_STREAM, network.gateway4, kDnsPort));
  sockets.dns_tcp6 = TRY(open_socket(SOCK_STREAM, network.gateway6, kDnsPort));
  sockets.refused = TRY(open_refusal_log(badge, inside));
  return sockets;
}

}  // namespace priv
