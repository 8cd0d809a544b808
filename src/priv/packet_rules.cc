// The packet rules of a sandbox's network namespace.
#include "priv/packet_rules.h"

#include "priv/nft_batch.h"

// After netinet/in.h, which nft_batch.h has.
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cstring>

#include "priv/netlink.h"

namespace priv {

namespace {

constexpr const char* kCapture = "capture";  // IPv4; jumps to kSix
constexpr const char* kSix = "six";
constexpr const char* kRefuse = "refuse";

template <std::size_t N>
std::string_view text_of(const std::array<std::uint8_t, N>& address) {
  return {reinterpret_cast<const char*>(address.data()), N};
}

// Where the two families differ.
struct Family {
  const char* chain;
  std::uint8_t nfproto;
  std::uint32_t source;  // offsets in the network header
  std::uint32_t destination;
  std::string_view own;
  std::string_view gateway;
  std::string_view loopback;
  unsigned loopback_bits;
};

constexpr std::string_view kLoopback4("\x7F\0\0\0", 4);
constexpr std::string_view kLoopback6("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);

std::array<Family, 2> families(const NamespaceNetwork& network) {
  return {Family{kCapture, NFPROTO_IPV4, 12, 16, text_of(network.own4), text_of(network.gateway4),
                 kLoopback4, 8},
          Family{kSix, NFPROTO_IPV6, 8, 24, text_of(network.own6), text_of(network.gateway6),
                 kLoopback6, 128}};
}

void tproxy(Batch& batch, const Family& family, std::uint16_t port) {
  const bool v6 = family.nfproto == NFPROTO_IPV6;
  batch.tproxy(NFT_REG_1, v6 ? NFPROTO_IPV6 : NFPROTO_IPV4, family.gateway, port);
}

// Rules of one family while the gateway serves.
void capture_family(Batch& batch, const Family& f, const std::vector<SteeredRange>& steered,
                    const std::vector<std::uint32_t>& sets) {
  const auto from = [&]() -> Batch& {
    return batch.rule(f.chain).meta(NFT_META_NFPROTO, f.nfproto);
  };
  from().network_prefix(f.destination, f.loopback, f.loopback_bits).accept();
  from().network_bytes(f.destination, f.own, NFT_CMP_EQ).accept();
  from().network_bytes(f.source, f.own, NFT_CMP_NEQ).go(kRefuse);
  for (std::size_t i = 0; i < steered.size(); ++i) {
    const SteeredRange& range = steered[i];
    if (range.v6 != (f.nfproto == NFPROTO_IPV6) || range.ports.empty()) continue;
    const std::string_view prefix = text_of(range.prefix).substr(0, range.v6 ? 16 : 4);
    Batch& rule = from().network_prefix(f.destination, prefix, range.bits);
    rule.meta(NFT_META_L4PROTO, IPPROTO_TCP);
    if (range.ports.size() == 1) {
      rule.port(range.ports[0]);
    } else {
      rule.port_in(sets[i]);
    }
    tproxy(batch, f, kCapturePort);
  }
  for (const std::uint8_t protocol : {std::uint8_t{IPPROTO_UDP}, std::uint8_t{IPPROTO_TCP}}) {
    from().meta(NFT_META_L4PROTO, protocol).port(kDnsPort);
    tproxy(batch, f, kDnsPort);
  }
  batch.rule(f.chain).go(kRefuse);
}

// Rules of one family once the network is cut: a server and its clients inside may still talk.
void cut_family(Batch& batch, const Family& f) {
  const auto from = [&]() -> Batch& {
    return batch.rule(f.chain).meta(NFT_META_NFPROTO, f.nfproto);
  };
  from()
      .network_prefix(f.source, f.loopback, f.loopback_bits)
      .network_prefix(f.destination, f.loopback, f.loopback_bits)
      .accept();
  from()
      .network_bytes(f.source, f.own, NFT_CMP_EQ)
      .network_bytes(f.destination, f.own, NFT_CMP_EQ)
      .accept();
  batch.rule(f.chain).go(kRefuse);
}

// What tells a peer that it was refused goes through: with no raw sockets inside, only the kernel
// sends resets and ICMP errors.
void refusals(Batch& batch) {
  batch.rule(kRefuse).reset_flag().accept();
  batch.rule(kRefuse).icmp_error(NFPROTO_IPV4).accept();
  batch.rule(kRefuse).icmp_error(NFPROTO_IPV6).accept();
  batch.rule(kRefuse).not_syn().reject_with_reset();
  batch.rule(kRefuse).count("refused").limit().count("logged").log();
  batch.rule(kRefuse).meta(NFT_META_L4PROTO, IPPROTO_TCP).reject_with_reset();
  batch.rule(kRefuse).reject_with_unreachable();
}

// The packets of a counter, from the kernel's description of it.
base::Result<std::uint64_t> packets_in(std::string_view answer) {
  constexpr std::size_t kHead = sizeof(nlmsghdr) + sizeof(nfgenmsg);
  if (answer.size() < kHead) return base::system_error("counter", EPROTO);
  nlmsghdr head = {};
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error = {};
    if (answer.size() < sizeof head + sizeof error.error)
      return base::system_error("counter", EPROTO);
    std::memcpy(&error.error, answer.data() + sizeof head, sizeof error.error);
    return base::system_error("counter", -error.error);
  }
  const std::string_view data = attribute_in(answer.substr(kHead), NFTA_OBJ_DATA);
  const std::string_view packets = attribute_in(data, NFTA_COUNTER_PACKETS);
  if (packets.size() != sizeof(std::uint64_t)) return base::system_error("counter", EPROTO);
  std::uint64_t value = 0;
  std::memcpy(&value, packets.data(), sizeof value);
  return __builtin_bswap64(value);
}

base::Result<std::uint64_t> read_counter(Badge badge, int socket, const char* name) {
  NetlinkMessages messages;
  const nfgenmsg head = {NFPROTO_INET, NFNETLINK_V0, 0};
  messages.begin(nft(NFT_MSG_GETOBJ), 0, as_bytes(head));
  messages.text(NFTA_OBJ_TABLE, kTable);
  messages.text(NFTA_OBJ_NAME, name);
  messages.number(NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
  messages.end();
  return packets_in(TRY(request(badge, socket, messages.bytes())));
}

}  // namespace

base::Result<RefusalCounters> read_refusals(Badge badge, int socket) {
  RefusalCounters counters;
  counters.refused = TRY(read_counter(badge, socket, "refused"));
  counters.logged = TRY(read_counter(badge, socket, "logged"));
  return counters;
}

std::string capture_rules(const NamespaceNetwork& network,
                          const std::vector<SteeredRange>& steered) {
  Batch batch;
  batch.table();
  batch.counter("refused");
  batch.counter("logged");
  batch.chain(kRefuse);
  batch.chain(kSix);
  batch.hooked_chain(kCapture);
  std::vector<std::uint32_t> sets;
  for (const auto& range : steered) {
    sets.push_back(range.ports.size() > 1 ? batch.ports(range.ports) : 0);
  }
  batch.rule(kCapture).meta(NFT_META_NFPROTO, NFPROTO_IPV6).go(kSix);
  for (const auto& family : families(network)) capture_family(batch, family, steered, sets);
  refusals(batch);
  return batch.finish();
}

std::string cut_rules(const NamespaceNetwork& network) {
  Batch batch;
  batch.empty_chain(kCapture);
  batch.empty_chain(kSix);
  batch.rule(kCapture).meta(NFT_META_NFPROTO, NFPROTO_IPV6).go(kSix);
  for (const auto& family : families(network)) cut_family(batch, family);
  return batch.finish();
}

}  // namespace priv
