// Counting what the kernel refused, and saying why in the policy's words.
#include "gateway/refused_log.h"

#include <netinet/in.h>

#include <cerrno>

#include "gateway/target.h"

namespace gateway {
namespace {

constexpr std::size_t kMostOpen = 1024;

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
      const Key key = key_of(packet);
      Open& open = open_[key];
      if (open.count++ != 0) continue;
      open.since = Clock::now();
      ++places_[key.guarded ? 1 : 0];
    }
  }
}

RefusedLog::Key RefusedLog::key_of(const RefusedPacket& packet) const {
  const bool guarded = policy::judge(packet.to).guard != policy::Guard::open &&
                       find_target(core_, to_endpoint(packet.to, packet.port)).literal;
  const Key key{
      .to = packet.to, .port = packet.port, .protocol = packet.protocol, .guarded = guarded};
  if (places_[guarded ? 1 : 0] < kMostOpen || open_.contains(key)) return key;
  return {.to = {}, .port = 0, .protocol = 0, .guarded = guarded};
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
    --places_[entry->first.guarded ? 1 : 0];
    entry = open_.erase(entry);
  }
}

Decision RefusedLog::decision(const Key& key, std::uint64_t count) const {
  Decision decision;
  decision.count = count;
  decision.port = key.port;
  decision.way = way_of(key.protocol);
  if (key == Key{.guarded = key.guarded}) {
    decision.host = "(other addresses)";
    decision.kind = key.guarded ? "range" : "host";
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
  // What the bytes would have been is not known: at other ports than 443 perhaps no TLS.
  const policy::Scheme named = key.port == 443 ? policy::Scheme::tls : policy::Scheme::http;
  const policy::Verdict verdict = policy::decide_connection(
      core_.policy(), {.scheme = target.literal ? policy::Scheme::tcp : named,
                       .host = target.host,
                       .port = key.port});
  decision.reason = verdict.reason.empty() ? "refused-in-kernel" : verdict.reason;
  decision.kind = kind_of(decision.reason);
  decision.fix = verdict.fix;
  return decision;
}

}  // namespace gateway
