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
constexpr const char* kRefuseSix = "refuse_six";
// Where a refused packet was going to, each with a log limit of its own: a flood to one of these
// hides nothing that goes to another.
constexpr const char* kMetadata = "to_metadata";
constexpr const char* kPrivate = "to_private";
constexpr const char* kNever = "to_never";
constexpr const char* kElsewhere = "to_elsewhere";

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

constexpr std::string_view kLinkGroups6("\xFF\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);

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

struct Watched {
  std::string_view first;
  unsigned bits;
  const char* chain;
};

template <std::size_t N>
constexpr std::string_view bytes(const char (&text)[N]) {
  return {text, N - 1};
}

// What the address guard (policy::judge) does not call open, gathered into few prefixes; the first
// that holds decides. The sandbox's own pools, 198.18.0.0/15 and fd63:6572:636f::/48, are told with
// the rest: what is refused there is a port of an allowed name.
constexpr Watched kWatched4[] = {
    {bytes("\xA9\xFE\0\0"), 16, kMetadata},      // 169.254.0.0, link-local with it
    {bytes("\xA8\x3F\x81\x10"), 32, kMetadata},  // 168.63.129.16
    {bytes("\x64\x64\x64\xC8"), 32, kMetadata},  // 100.100.100.200
    {bytes("\x64\x60\0\x60"), 32, kMetadata},    // 100.96.0.96
    {bytes("\xC0\0\0\xC0"), 32, kMetadata},      // 192.0.0.192
    {bytes("\x0A\0\0\0"), 8, kPrivate},          // 10.0.0.0
    {bytes("\xAC\x10\0\0"), 12, kPrivate},       // 172.16.0.0
    {bytes("\xC0\xA8\0\0"), 16, kPrivate},       // 192.168.0.0
    {bytes("\x64\x40\0\0"), 10, kPrivate},       // 100.64.0.0
    {bytes("\0\0\0\0"), 8, kNever},              // 0.0.0.0
    {bytes("\x7F\0\0\0"), 8, kNever},            // 127.0.0.0
    {bytes("\xC0\0\0\0"), 24, kNever},           // 192.0.0.0
    {bytes("\xC0\0\x02\0"), 24, kNever},         // 192.0.2.0
    {bytes("\xC0\x1F\xC4\0"), 24, kNever},       // 192.31.196.0
    {bytes("\xC0\x34\xC1\0"), 24, kNever},       // 192.52.193.0
    {bytes("\xC0\x58\x63\0"), 24, kNever},       // 192.88.99.0
    {bytes("\xC0\xAF\x30\0"), 24, kNever},       // 192.175.48.0
    {bytes("\xC6\x33\x64\0"), 24, kNever},       // 198.51.100.0
    {bytes("\xCB\0\x71\0"), 24, kNever},         // 203.0.113.0
    {bytes("\xE0\0\0\0"), 3, kNever},            // 224.0.0.0
};
// Whatever is neither here nor in 2000::/3 is never opened.
constexpr Watched kWatched6[] = {
    {bytes("\xFD\x63\x65\x72\x63\x6F\0\0\0\0\0\0\0\0\0\0"), 48, kElsewhere},
    {bytes("\xFD\0\x0E\xC2\0\0\0\0\0\0\0\0\0\0\0\0"), 32, kMetadata},  // fd00:ec2::
    {bytes("\xFD\x20\0\xCE\0\0\0\0\0\0\0\0\0\0\0\0"), 32, kMetadata},  // fd20:ce::
    {bytes("\xFD\0\0\xC1\0\0\0\0\0\0\0\0\0\0\0\0"), 32, kMetadata},    // fd00:c1::
    {bytes("\xFD\0\xA9\xFE\0\0\0\0\0\0\0\0\0\0\0\0"), 32, kMetadata},  // fd00:a9fe::
    {bytes("\xFD\0\0\x42\0\0\0\0\0\0\0\0\0\0\0\0"), 32, kMetadata},    // fd00:42::
    {bytes("\xFE\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 10, kMetadata},    // fe80::
    {bytes("\xFC\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 7, kPrivate},        // fc00::
    {bytes("\x20\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 23, kNever},       // 2001::
    {bytes("\x20\x01\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\0"), 32, kNever},   // 2001:db8::
    {bytes("\x20\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 16, kNever},       // 2002::
    {bytes("\x26\x20\0\x4F\x80\0\0\0\0\0\0\0\0\0\0\0"), 48, kNever},   // 2620:4f:8000::
    {bytes("\x3F\xFE\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 16, kNever},       // 3ffe::
    {bytes("\x3F\xFF\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), 20, kNever},       // 3fff::
};
constexpr std::string_view kGlobalUnicast6 = bytes("\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
// RFC 5214: an interface identifier that carries an IPv4 address.
constexpr std::string_view kIsatap[] = {bytes("\0\0\x5E\xFE"), bytes("\x02\0\x5E\xFE")};
// The pools and what lies around them (RFC 2544).
constexpr std::string_view kBenchmark4 = bytes("\xC6\x12\0\0");

// What judge() calls open; the rest is left to the refusals that tell it apart.
void steer_public(Batch& batch, const Family& f) {
  const bool v6 = f.nfproto == NFPROTO_IPV6;
  const auto to = [&](std::string_view prefix, unsigned bits) -> Batch& {
    return batch.rule(f.chain)
        .meta(NFT_META_NFPROTO, f.nfproto)
        .network_prefix(f.destination, prefix, bits);
  };
  if (!v6) {
    for (const Watched& range : kWatched4) to(range.first, range.bits).go(kRefuse);
    to(kBenchmark4, 15).go(kRefuse);
    Batch& rule = batch.rule(f.chain).meta(NFT_META_NFPROTO, f.nfproto);
    rule.meta(NFT_META_L4PROTO, IPPROTO_TCP);
    return tproxy(batch, f, kCapturePort);
  }
  for (const Watched& range : kWatched6) to(range.first, range.bits).go(kRefuse);
  for (const std::string_view identifier : kIsatap) {
    batch.rule(f.chain)
        .meta(NFT_META_NFPROTO, f.nfproto)
        .network_bytes(f.destination + 8, identifier, NFT_CMP_EQ)
        .go(kRefuse);
  }
  to(kGlobalUnicast6, 3).meta(NFT_META_L4PROTO, IPPROTO_TCP);
  tproxy(batch, f, kCapturePort);
}

// Rules of one family while the gateway serves.
void capture_family(Batch& batch, const Family& f, const std::vector<SteeredRange>& steered,
                    const std::vector<std::uint32_t>& sets, Public others) {
  const auto from = [&]() -> Batch& {
    return batch.rule(f.chain).meta(NFT_META_NFPROTO, f.nfproto);
  };
  from().network_prefix(f.destination, f.loopback, f.loopback_bits).accept();
  from().network_bytes(f.destination, f.own, NFT_CMP_EQ).accept();
  from().network_bytes(f.source, f.own, NFT_CMP_NEQ).go(kRefuse);
  for (std::size_t i = 0; i < steered.size(); ++i) {
    const SteeredRange& range = steered[i];
    if (range.v6 != (f.nfproto == NFPROTO_IPV6)) continue;
    const std::string_view prefix = text_of(range.prefix).substr(0, range.v6 ? 16 : 4);
    Batch& rule = from().network_prefix(f.destination, prefix, range.bits);
    rule.meta(NFT_META_L4PROTO, IPPROTO_TCP);
    if (range.ports.size() == 1) {
      rule.port(range.ports[0]);
    } else if (!range.ports.empty()) {
      rule.port_in(sets[i]);
    }
    tproxy(batch, f, kCapturePort);
  }
  for (const std::uint8_t protocol : {std::uint8_t{IPPROTO_UDP}, std::uint8_t{IPPROTO_TCP}}) {
    from().meta(NFT_META_L4PROTO, protocol).port(kDnsPort);
    tproxy(batch, f, kDnsPort);
  }
  if (others == Public::steered) steer_public(batch, f);
  batch.rule(f.chain).go(kRefuse);
}

// The rules of both, in chains that are empty.
void capture_both(Batch& batch, const NamespaceNetwork& network,
                  const std::vector<SteeredRange>& steered, Public others) {
  std::vector<std::uint32_t> sets;
  for (const auto& range : steered) {
    sets.push_back(range.ports.size() > 1 ? batch.ports(range.ports) : 0);
  }
  batch.rule(kCapture).meta(NFT_META_NFPROTO, NFPROTO_IPV6).go(kSix);
  if (network.guest) {
    const Family six = families(network)[1];
    batch.rule(kSix)
        .meta(NFT_META_L4PROTO, IPPROTO_ICMPV6)
        .network_prefix(six.destination, kLinkGroups6, 16)
        .drop();
  }
  for (const auto& family : families(network)) {
    capture_family(batch, family, steered, sets, others);
  }
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

// One class of destinations: counted exactly, logged at its own rate, then answered.
void refused_class(Batch& batch, const char* chain) {
  Batch& rule = batch.rule(chain).count("refused");
  const bool range = chain != kElsewhere;
  if (range) rule.count("refused_ranges");
  rule.limit().count("logged");
  if (range) rule.count("logged_ranges");
  rule.log();
  batch.rule(chain).meta(NFT_META_L4PROTO, IPPROTO_TCP).reject_with_reset();
  batch.rule(chain).reject_with_unreachable();
}

// What tells a peer that it was refused goes through: with no raw sockets inside, only the kernel
// sends resets and ICMP errors.
void refusals(Batch& batch, const std::array<Family, 2>& both) {
  batch.rule(kRefuse).reset_flag().accept();
  batch.rule(kRefuse).icmp_error(NFPROTO_IPV4).accept();
  batch.rule(kRefuse).icmp_error(NFPROTO_IPV6).accept();
  batch.rule(kRefuse).not_syn().reject_with_reset();
  batch.rule(kRefuse).meta(NFT_META_NFPROTO, NFPROTO_IPV6).go(kRefuseSix);
  const auto& [four, six] = both;
  for (const Watched& range : kWatched4) {
    batch.rule(kRefuse).network_prefix(four.destination, range.first, range.bits).go(range.chain);
  }
  batch.rule(kRefuse).go(kElsewhere);
  for (const Watched& range : kWatched6) {
    batch.rule(kRefuseSix).network_prefix(six.destination, range.first, range.bits).go(range.chain);
  }
  for (const std::string_view identifier : kIsatap) {
    batch.rule(kRefuseSix).network_bytes(six.destination + 8, identifier, NFT_CMP_EQ).go(kNever);
  }
  batch.rule(kRefuseSix).network_prefix(six.destination, kGlobalUnicast6, 3).go(kElsewhere);
  batch.rule(kRefuseSix).go(kNever);
  for (const char* chain : {kMetadata, kPrivate, kNever, kElsewhere}) refused_class(batch, chain);
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
  counters.refused_ranges = TRY(read_counter(badge, socket, "refused_ranges"));
  counters.logged_ranges = TRY(read_counter(badge, socket, "logged_ranges"));
  return counters;
}

std::string capture_rules(const NamespaceNetwork& network, const std::vector<SteeredRange>& steered,
                          Public others) {
  Batch batch;
  batch.table();
  for (const char* name : {"refused", "logged", "refused_ranges", "logged_ranges"}) {
    batch.counter(name);
  }
  for (const char* name : {kMetadata, kPrivate, kNever, kElsewhere, kRefuseSix, kRefuse}) {
    batch.chain(name);
  }
  batch.chain(kSix);
  batch.hooked_chain(kCapture);
  capture_both(batch, network, steered, others);
  refusals(batch, families(network));
  return batch.finish();
}

std::string steering_rules(const NamespaceNetwork& network,
                           const std::vector<SteeredRange>& steered, Public others) {
  Batch batch;
  batch.empty_chain(kCapture);
  batch.empty_chain(kSix);
  capture_both(batch, network, steered, others);
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
