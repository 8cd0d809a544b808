// Addresses and on-link networks by rtnetlink(7).
#include "os/interfaces.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace os {
namespace {

// A fixed-size header at the start of `bytes`, copied out since nothing is aligned.
template <class T>
std::optional<T> header(std::string_view bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

constexpr std::size_t aligned(std::size_t size) {
  return (size + 3) & ~std::size_t{3};
}

// Calls `each(type, payload)` for the attributes; false when one does not fit.
template <class Each>
bool attributes(std::string_view bytes, Each each) {
  while (!bytes.empty()) {
    const auto head = header<rtattr>(bytes);
    if (!head || head->rta_len < sizeof(rtattr) || head->rta_len > bytes.size()) return false;
    each(head->rta_type, bytes.substr(sizeof(rtattr), head->rta_len - sizeof(rtattr)));
    bytes.remove_prefix(std::min(bytes.size(), aligned(head->rta_len)));
  }
  return true;
}

std::optional<Network> network(int family, std::string_view address, unsigned bits) {
  Network made;
  made.v6 = family == AF_INET6;
  const std::size_t size = made.v6 ? 16 : 4;
  if ((family != AF_INET && family != AF_INET6) || address.size() != size || bits > size * 8) {
    return std::nullopt;
  }
  std::memcpy(made.address.data(), address.data(), size);
  made.bits = bits;
  return made;
}

bool read_address(std::string_view body, LocalNetworks& networks) {
  const auto head = header<ifaddrmsg>(body);
  if (!head) return false;
  // On a point-to-point link IFA_LOCAL is ours and IFA_ADDRESS the peer's; else they are the same.
  std::string_view local;
  std::string_view address;
  if (!attributes(body.substr(std::min(body.size(), aligned(sizeof *head))),
                  [&](unsigned type, std::string_view value) {
                    if (type == IFA_LOCAL) local = value;
                    if (type == IFA_ADDRESS) address = value;
                  })) {
    return false;
  }
  for (const std::string_view text : {local, address}) {
    if (text.empty()) continue;
    const auto made = network(head->ifa_family, text, head->ifa_prefixlen);
    if (!made) return false;
    networks.attached.push_back(*made);
    if (text.data() != local.data() && !local.empty()) continue;
    networks.own.push_back(*made);
    networks.own.back().bits = made->v6 ? 128 : 32;
  }
  return true;
}

bool read_route(std::string_view body, LocalNetworks& networks) {
  const auto head = header<rtmsg>(body);
  if (!head) return false;
  std::string_view target;
  std::string_view router;
  if (!attributes(body.substr(std::min(body.size(), aligned(sizeof *head))),
                  [&](unsigned type, std::string_view value) {
                    if (type == RTA_DST) target = value;
                    if (type == RTA_GATEWAY) router = value;
                  })) {
    return false;
  }
  const unsigned full = head->rtm_family == AF_INET6 ? 128 : 32;
  if (!router.empty()) {
    if (const auto made = network(head->rtm_family, router, full))
      networks.attached.push_back(*made);
    return true;
  }
  if (target.empty()) return true;  // a default route without a router names no subnet
  const auto made = network(head->rtm_family, target, head->rtm_dst_len);
  if (!made) return false;
  // A local route makes addresses ours that no interface carries (ip route add local …).
  if (head->rtm_type == RTN_LOCAL) networks.own.push_back(*made);
  if (head->rtm_type == RTN_UNICAST && head->rtm_dst_len > 0) networks.attached.push_back(*made);
  return true;
}

base::Result<base::Fd> netlink(unsigned groups) {
  base::Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd.open()) return base::system_error("socket NETLINK_ROUTE");
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return base::system_error("bind NETLINK_ROUTE");
  }
  return fd;
}

base::Status ask(int socket, std::uint16_t type) {
  struct {
    nlmsghdr head;
    rtgenmsg body;
  } request = {};
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.head.nlmsg_type = type;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = AF_UNSPEC;
  if (::send(socket, &request, request.head.nlmsg_len, MSG_NOSIGNAL) < 0) {
    return base::system_error("rtnetlink dump");
  }
  return {};
}

}  // namespace

bool read_networks(std::string_view bytes, LocalNetworks& networks, bool& done) {
  while (!bytes.empty()) {
    const auto head = header<nlmsghdr>(bytes);
    if (!head || head->nlmsg_len < sizeof *head || head->nlmsg_len > bytes.size()) return false;
    const std::string_view body = bytes.substr(sizeof *head, head->nlmsg_len - sizeof *head);
    if (head->nlmsg_type == NLMSG_ERROR) return false;
    if (head->nlmsg_type == NLMSG_DONE) done = true;
    if (head->nlmsg_type == RTM_NEWADDR && !read_address(body, networks)) return false;
    if (head->nlmsg_type == RTM_NEWROUTE && !read_route(body, networks)) return false;
    bytes.remove_prefix(std::min(bytes.size(), aligned(head->nlmsg_len)));
  }
  return true;
}

base::Result<Interfaces> Interfaces::open() {
  Interfaces made;
  made.notices_ = TRY(netlink(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE |
                              RTMGRP_IPV6_ROUTE | RTMGRP_LINK));
  made.dumps_ = TRY(netlink(0));
  made.networks_ = TRY(made.dump());
  made.fresh_ = true;
  return made;
}

base::Result<LocalNetworks> Interfaces::dump() {
  LocalNetworks networks;
  for (const std::uint16_t type : {std::uint16_t{RTM_GETADDR}, std::uint16_t{RTM_GETROUTE}}) {
    auto asked = ask(dumps_.get(), type);
    if (!asked) return std::unexpected(std::move(asked).error());
    bool done = false;
    char buffer[32768];
    while (!done) {
      const ssize_t count = ::recv(dumps_.get(), buffer, sizeof buffer, 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return base::system_error("rtnetlink dump");
      if (!read_networks({buffer, static_cast<std::size_t>(count)}, networks, done)) {
        return base::fail(base::Kind::system, "rtnetlink dump", "malformed answer", {});
      }
    }
  }
  return networks;
}

base::Result<const LocalNetworks*> Interfaces::now() {
  char buffer[8192];
  while (true) {
    const ssize_t count = ::recv(notices_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0 && errno != ENOBUFS) return base::system_error("rtnetlink notices");
    fresh_ = false;  // ENOBUFS: notices were lost, so there were some
  }
  if (!fresh_) {
    networks_ = TRY(dump());
    fresh_ = true;
  }
  return &networks_;
}

}  // namespace os
