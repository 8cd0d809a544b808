// nfnetlink_log messages (linux/netfilter/nfnetlink_log.h): what is inside them was made by hostile
// code.
#include "gateway/refused_log.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "gateway/target.h"

namespace gateway {
namespace {

constexpr std::size_t kMostOpen = 1024;
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
  const std::size_t length = (byte(bytes, 0) & 0xfU) * 4;
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
    const std::size_t length = (byte(bytes, 1) + 1U) * 8;
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

std::string way_of(std::uint8_t protocol) {
  switch (protocol) {
    case IPPROTO_TCP:
      return "tcp";
    case IPPROTO_UDP:
      return "udp";
    case IPPROTO_ICMP:
    case IPPROTO_ICMPV6:
      return "icmp";
    default:
      return "ip-" + std::to_string(protocol);
  }
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

void RefusedLog::read(int socket) {
  std::vector<RefusedPacket> packets;
  for (int reads = 0; reads < 256; ++reads) {
    const os::Moved got = os::receive(socket, core_.scratch);
    if (got.error == ENOBUFS) continue;  // some were lost; the kernel's counter has them all
    if (got.failed() || got.end()) break;
    packets.clear();
    (void)read_refused({core_.scratch.data(), got.bytes}, packets);
    for (const RefusedPacket& packet : packets) {
      ++logged_;
      Key key{.to = packet.to, .port = packet.port, .protocol = packet.protocol};
      // A scan of more than this many places at once is told without its places.
      if (!open_.contains(key) && open_.size() >= kMostOpen)
        key = {.to = {}, .port = 0, .protocol = 0};
      Open& open = open_[key];
      if (open.count++ == 0) open.since = Clock::now();
    }
  }
}

void RefusedLog::tell(Which which) {
  const auto ripe = Clock::now() - std::chrono::seconds(1);
  for (auto entry = open_.begin(); entry != open_.end();) {
    if (which == Which::ripe && entry->second.since > ripe) {
      ++entry;
      continue;
    }
    // A journal that is gone shows at the next decision; the refusal itself has been carried out.
    (void)core_.recorder.decision(decision(entry->first, entry->second.count));
    entry = open_.erase(entry);
  }
}

Decision RefusedLog::decision(const Key& key, std::uint64_t count) const {
  Decision decision;
  decision.count = count;
  decision.port = key.port;
  decision.way = way_of(key.protocol);
  if (key == Key{}) {
    decision.host = "(other addresses)";
    decision.kind = "host";
    decision.reason = "too-many-places";
    decision.way = "tcp";
    return decision;
  }
  const Target target = find_target(core_, to_endpoint(key.to, key.port));
  decision.host = target.host.name;
  decision.address = policy::to_string(key.to);
  const policy::Judgement judgement = policy::judge(key.to);
  if (target.literal && judgement.guard != policy::Guard::open) {
    decision.kind = "range";
    decision.reason = judgement.reason;
    return decision;
  }
  if (key.protocol != IPPROTO_TCP) {
    decision.kind = "protocol";
    decision.reason = decision.way;
    return decision;
  }
  const policy::Verdict verdict = policy::decide_connection(
      core_.policy(), {.scheme = target.literal ? policy::Scheme::tcp : policy::Scheme::tls,
                       .host = target.host,
                       .port = key.port});
  decision.reason = verdict.reason.empty() ? "refused-in-kernel" : verdict.reason;
  decision.kind = kind_of(decision.reason);
  decision.fix = verdict.fix;
  return decision;
}

}  // namespace gateway
