// nfnetlink_log messages (linux/netfilter/nfnetlink_log.h) and the packets in them.
#include "gateway/refused_packet.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace gateway {
namespace {

constexpr std::uint16_t kPacketMessage = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;

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

std::uint8_t byte(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint8_t>(bytes[at]);
}

// Ports stand in the same place in all of these.
void take_port(std::string_view transport, RefusedPacket& packet) {
  const bool ports = packet.protocol == IPPROTO_TCP || packet.protocol == IPPROTO_UDP ||
                     packet.protocol == IPPROTO_UDPLITE || packet.protocol == IPPROTO_SCTP ||
                     packet.protocol == IPPROTO_DCCP;
  if (!ports || transport.size() < 4) return;
  packet.port = static_cast<std::uint16_t>(byte(transport, 2) << 8 | byte(transport, 3));
}

bool read_v4(std::string_view bytes, RefusedPacket& packet) {
  if (bytes.size() < 20) return false;
  const std::size_t length = std::size_t{4} * (byte(bytes, 0) & 0xfU);
  if (length < 20) return false;
  packet.protocol = byte(bytes, 9);
  std::memcpy(packet.to.bytes.data(), bytes.data() + 16, 4);
  const unsigned offset = (byte(bytes, 6) << 8 | byte(bytes, 7)) & 0x1fffU;
  if (offset == 0 && bytes.size() > length) take_port(bytes.substr(length), packet);
  return true;
}

bool read_v6(std::string_view bytes, RefusedPacket& packet) {
  if (bytes.size() < 40) return false;
  packet.to.v6 = true;
  std::memcpy(packet.to.bytes.data(), bytes.data() + 24, 16);
  packet.protocol = byte(bytes, 6);
  bytes.remove_prefix(40);
  // A few extension headers at most; what lies behind more is not looked for.
  for (int headers = 0; headers < 8; ++headers) {
    const bool extension = packet.protocol == IPPROTO_HOPOPTS ||
                           packet.protocol == IPPROTO_ROUTING || packet.protocol == IPPROTO_DSTOPTS;
    if (packet.protocol == IPPROTO_FRAGMENT || !extension || bytes.size() < 8) break;
    const std::size_t length = std::size_t{8} * (byte(bytes, 1) + 1U);
    packet.protocol = byte(bytes, 0);
    bytes.remove_prefix(std::min(bytes.size(), length));
  }
  take_port(bytes, packet);
  return true;
}

bool read_message(std::string_view body, std::vector<RefusedPacket>& packets) {
  if (body.size() < sizeof(nfgenmsg)) return false;
  body.remove_prefix(sizeof(nfgenmsg));
  while (!body.empty()) {
    const auto head = header<nlattr>(body);
    if (!head || head->nla_len < sizeof *head || head->nla_len > body.size()) return false;
    if ((head->nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD) {
      RefusedPacket packet;
      if (!read_packet(body.substr(sizeof *head, head->nla_len - sizeof *head), packet))
        return false;
      packets.push_back(packet);
    }
    body.remove_prefix(std::min(body.size(), aligned(head->nla_len)));
  }
  return true;
}

}  // namespace

bool read_packet(std::string_view bytes, RefusedPacket& packet) {
  if (bytes.empty()) return false;
  const unsigned version = byte(bytes, 0) >> 4;
  if (version == 4) return read_v4(bytes, packet);
  return version == 6 && read_v6(bytes, packet);
}

bool read_refused(std::string_view bytes, std::vector<RefusedPacket>& packets) {
  while (!bytes.empty()) {
    const auto head = header<nlmsghdr>(bytes);
    if (!head || head->nlmsg_len < sizeof *head || head->nlmsg_len > bytes.size()) return false;
    const std::string_view body = bytes.substr(sizeof *head, head->nlmsg_len - sizeof *head);
    if (head->nlmsg_type == kPacketMessage && !read_message(body, packets)) return false;
    bytes.remove_prefix(std::min(bytes.size(), aligned(head->nlmsg_len)));
  }
  return true;
}

}  // namespace gateway
