// The packet rules of a sandbox's network namespace.
#include "priv/packet_rules.h"

// Before the kernel's own headers, which then leave out what these define.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include <cstring>

#include "priv/netlink.h"

namespace priv {

namespace {

constexpr const char* kTable = "cerco";
constexpr const char* kCapture = "capture";  // IPv4; jumps to kSix
constexpr const char* kSix = "six";
constexpr const char* kRefuse = "refuse";
constexpr std::int32_t kBeforeRouting = -150;  // priority "mangle": where TPROXY is looked for
constexpr std::uint32_t kInetService = 13;  // nft's own number for a port, so that it prints as one
constexpr std::uint32_t kRatePerSecond = 100;
constexpr std::uint32_t kBurst = 200;

template <std::size_t N>
std::string_view text_of(const std::array<std::uint8_t, N>& address) {
  return {reinterpret_cast<const char*>(address.data()), N};
}

std::string port_bytes(std::uint16_t port) {
  return {static_cast<char>(port >> 8), static_cast<char>(port & 0xFF)};
}

std::uint16_t nft(int message) {
  return static_cast<std::uint16_t>((NFNL_SUBSYS_NFTABLES << 8) | message);
}

// One batch: the kernel takes all of it or nothing.
class Batch {
 public:
  Batch() { boundary(NFNL_MSG_BATCH_BEGIN); }

  void table();
  void counter(const char* name);
  void chain(const char* name);
  void hooked_chain(const char* name);
  void empty_chain(const char* name);
  // A constant set of ports; the number that lookup() refers to it by.
  std::uint32_t ports(const std::vector<std::uint16_t>& ports);

  // Rules: start a rule, add what it looks for in order, end with what it does.
  Batch& rule(const char* chain);
  Batch& meta(std::uint32_t key, std::uint8_t value);
  Batch& network_bytes(std::uint32_t offset, std::string_view wanted, nft_cmp_ops op);
  Batch& network_prefix(std::uint32_t offset, std::string_view prefix, unsigned bits);
  Batch& port(std::uint16_t wanted);
  Batch& port_in(std::uint32_t set);
  Batch& not_syn();
  Batch& limit();
  Batch& count(const char* name);
  void log();
  void tproxy(nft_registers registers, int family, std::string_view address, std::uint16_t port);
  void accept() { verdict(NF_ACCEPT, nullptr); }
  void go(const char* chain) { verdict(NFT_GOTO, chain); }
  void reject_with_reset() { reject(NFT_REJECT_TCP_RST, 0); }
  void reject_with_unreachable() {
    reject(NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
  }

  [[nodiscard]] std::string finish();

 private:
  void boundary(std::uint16_t type);
  void begin(int message, std::uint16_t flags);
  void expression(const char* name);
  void end_expression();
  void immediate(std::uint32_t reg, std::string_view value);
  void compare(nft_cmp_ops op, std::string_view value);
  void load(nft_payload_bases base, std::uint32_t offset, std::size_t length);
  void mask(std::string_view mask);
  void verdict(int code, const char* chain);
  void reject(nft_reject_types type, std::uint8_t code);
  void end_rule();

  NetlinkMessages messages_;
  std::uint32_t sets_ = 0;
};

void Batch::boundary(std::uint16_t type) {
  const nfgenmsg head = {AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)};
  messages_.begin(type, 0, as_bytes(head));
  messages_.end();
}

void Batch::begin(int message, std::uint16_t flags) {
  const nfgenmsg head = {NFPROTO_INET, NFNETLINK_V0, 0};
  messages_.begin(nft(message), flags, as_bytes(head));
}

void Batch::table() {
  begin(NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
  messages_.text(NFTA_TABLE_NAME, kTable);
  messages_.end();
}

void Batch::counter(const char* name) {
  begin(NFT_MSG_NEWOBJ, NLM_F_CREATE | NLM_F_EXCL);
  messages_.text(NFTA_OBJ_TABLE, kTable);
  messages_.text(NFTA_OBJ_NAME, name);
  messages_.number(NFTA_OBJ_TYPE, NFT_OBJECT_COUNTER);
  messages_.open(NFTA_OBJ_DATA);
  messages_.number64(NFTA_COUNTER_BYTES, 0);
  messages_.number64(NFTA_COUNTER_PACKETS, 0);
  messages_.close();
  messages_.end();
}

void Batch::chain(const char* name) {
  begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
  messages_.text(NFTA_CHAIN_TABLE, kTable);
  messages_.text(NFTA_CHAIN_NAME, name);
  messages_.end();
}

// Looks at everything that arrives on lo, which is everything that was sent; policy drop.
void Batch::hooked_chain(const char* name) {
  begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
  messages_.text(NFTA_CHAIN_TABLE, kTable);
  messages_.text(NFTA_CHAIN_NAME, name);
  messages_.open(NFTA_CHAIN_HOOK);
  messages_.number(NFTA_HOOK_HOOKNUM, NF_INET_PRE_ROUTING);
  messages_.number(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(kBeforeRouting));
  messages_.close();
  messages_.number(NFTA_CHAIN_POLICY, NF_DROP);
  messages_.text(NFTA_CHAIN_TYPE, "filter");
  messages_.end();
}

void Batch::empty_chain(const char* name) {
  begin(NFT_MSG_DELRULE, 0);
  messages_.text(NFTA_RULE_TABLE, kTable);
  messages_.text(NFTA_RULE_CHAIN, name);
  messages_.end();
}

std::uint32_t Batch::ports(const std::vector<std::uint16_t>& ports) {
  const std::uint32_t id = ++sets_;
  begin(NFT_MSG_NEWSET, NLM_F_CREATE);
  messages_.text(NFTA_SET_TABLE, kTable);
  messages_.text(NFTA_SET_NAME, "__set%d");
  messages_.number(NFTA_SET_FLAGS, NFT_SET_ANONYMOUS | NFT_SET_CONSTANT);
  messages_.number(NFTA_SET_KEY_TYPE, kInetService);
  messages_.number(NFTA_SET_KEY_LEN, 2);
  messages_.number(NFTA_SET_ID, id);
  messages_.open(NFTA_SET_DESC);
  messages_.number(NFTA_SET_DESC_SIZE, static_cast<std::uint32_t>(ports.size()));
  messages_.close();
  messages_.end();
  begin(NFT_MSG_NEWSETELEM, NLM_F_CREATE);
  messages_.text(NFTA_SET_ELEM_LIST_TABLE, kTable);
  messages_.text(NFTA_SET_ELEM_LIST_SET, "__set%d");
  messages_.number(NFTA_SET_ELEM_LIST_SET_ID, id);
  messages_.open(NFTA_SET_ELEM_LIST_ELEMENTS);
  for (const std::uint16_t port : ports) {
    messages_.open(NFTA_LIST_ELEM);
    messages_.open(NFTA_SET_ELEM_KEY);
    messages_.attribute(NFTA_DATA_VALUE, port_bytes(port));
    messages_.close();
    messages_.close();
  }
  messages_.close();
  messages_.end();
  return id;
}

Batch& Batch::rule(const char* chain) {
  begin(NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
  messages_.text(NFTA_RULE_TABLE, kTable);
  messages_.text(NFTA_RULE_CHAIN, chain);
  messages_.open(NFTA_RULE_EXPRESSIONS);
  return *this;
}

void Batch::end_rule() {
  messages_.close();
  messages_.end();
}

void Batch::expression(const char* name) {
  messages_.open(NFTA_LIST_ELEM);
  messages_.text(NFTA_EXPR_NAME, name);
  messages_.open(NFTA_EXPR_DATA);
}

void Batch::end_expression() {
  messages_.close();
  messages_.close();
}

void Batch::immediate(std::uint32_t reg, std::string_view value) {
  expression("immediate");
  messages_.number(NFTA_IMMEDIATE_DREG, reg);
  messages_.open(NFTA_IMMEDIATE_DATA);
  messages_.attribute(NFTA_DATA_VALUE, value);
  messages_.close();
  end_expression();
}

void Batch::compare(nft_cmp_ops op, std::string_view value) {
  expression("cmp");
  messages_.number(NFTA_CMP_SREG, NFT_REG_1);
  messages_.number(NFTA_CMP_OP, op);
  messages_.open(NFTA_CMP_DATA);
  messages_.attribute(NFTA_DATA_VALUE, value);
  messages_.close();
  end_expression();
}

void Batch::load(nft_payload_bases base, std::uint32_t offset, std::size_t length) {
  expression("payload");
  messages_.number(NFTA_PAYLOAD_DREG, NFT_REG_1);
  messages_.number(NFTA_PAYLOAD_BASE, base);
  messages_.number(NFTA_PAYLOAD_OFFSET, offset);
  messages_.number(NFTA_PAYLOAD_LEN, static_cast<std::uint32_t>(length));
  end_expression();
}

void Batch::mask(std::string_view mask) {
  expression("bitwise");
  messages_.number(NFTA_BITWISE_SREG, NFT_REG_1);
  messages_.number(NFTA_BITWISE_DREG, NFT_REG_1);
  messages_.number(NFTA_BITWISE_LEN, static_cast<std::uint32_t>(mask.size()));
  messages_.open(NFTA_BITWISE_MASK);
  messages_.attribute(NFTA_DATA_VALUE, mask);
  messages_.close();
  messages_.open(NFTA_BITWISE_XOR);
  messages_.attribute(NFTA_DATA_VALUE, std::string(mask.size(), '\0'));
  messages_.close();
  end_expression();
}

Batch& Batch::meta(std::uint32_t key, std::uint8_t value) {
  expression("meta");
  messages_.number(NFTA_META_DREG, NFT_REG_1);
  messages_.number(NFTA_META_KEY, key);
  end_expression();
  compare(NFT_CMP_EQ, as_bytes(value));
  return *this;
}

Batch& Batch::network_bytes(std::uint32_t offset, std::string_view wanted, nft_cmp_ops op) {
  load(NFT_PAYLOAD_NETWORK_HEADER, offset, wanted.size());
  compare(op, wanted);
  return *this;
}

Batch& Batch::network_prefix(std::uint32_t offset, std::string_view prefix, unsigned bits) {
  if (bits == 0) return *this;
  load(NFT_PAYLOAD_NETWORK_HEADER, offset, prefix.size());
  std::string wanted(prefix);
  std::string kept(prefix.size(), '\0');
  for (unsigned bit = 0; bit < bits; ++bit) kept[bit / 8] |= static_cast<char>(0x80 >> (bit % 8));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = static_cast<char>(wanted[i] & kept[i]);
  if (bits < prefix.size() * 8) mask(kept);
  compare(NFT_CMP_EQ, wanted);
  return *this;
}

Batch& Batch::port(std::uint16_t wanted) {
  load(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
  compare(NFT_CMP_EQ, port_bytes(wanted));
  return *this;
}

Batch& Batch::port_in(std::uint32_t set) {
  load(NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
  expression("lookup");
  messages_.number(NFTA_LOOKUP_SREG, NFT_REG_1);
  messages_.text(NFTA_LOOKUP_SET, "__set%d");
  messages_.number(NFTA_LOOKUP_SET_ID, set);
  end_expression();
  return *this;
}

// TCP that does not ask for a connection: a refused one has been reset already.
Batch& Batch::not_syn() {
  meta(NFT_META_L4PROTO, IPPROTO_TCP);
  load(NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
  mask(as_bytes(static_cast<std::uint8_t>(TH_FIN | TH_SYN | TH_RST | TH_ACK)));
  compare(NFT_CMP_NEQ, as_bytes(static_cast<std::uint8_t>(TH_SYN)));
  return *this;
}

Batch& Batch::limit() {
  expression("limit");
  messages_.number64(NFTA_LIMIT_RATE, kRatePerSecond);
  messages_.number64(NFTA_LIMIT_UNIT, 1);
  messages_.number(NFTA_LIMIT_BURST, kBurst);
  messages_.number(NFTA_LIMIT_TYPE, NFT_LIMIT_PKTS);
  end_expression();
  return *this;
}

Batch& Batch::count(const char* name) {
  expression("objref");
  messages_.number(NFTA_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER);
  messages_.text(NFTA_OBJREF_IMM_NAME, name);
  end_expression();
  return *this;
}

void Batch::log() {
  expression("log");
  const std::uint16_t group = htons(kRefusalGroup);
  messages_.attribute(NFTA_LOG_GROUP, as_bytes(group));
  messages_.number(NFTA_LOG_SNAPLEN, kLoggedBytes);
  const std::uint16_t threshold = htons(1);  // each at once
  messages_.attribute(NFTA_LOG_QTHRESHOLD, as_bytes(threshold));
  end_expression();
  end_rule();
}

// To the socket at `address`, or to the one that the connection has already. Where there is none,
// the rule does not apply and the packet goes on to be refused.
void Batch::tproxy(nft_registers registers, int family, std::string_view address,
                   std::uint16_t port) {
  const auto port_register = static_cast<std::uint32_t>(registers + 1);
  immediate(registers, address);
  immediate(port_register, port_bytes(port));
  expression("tproxy");
  messages_.number(NFTA_TPROXY_FAMILY, static_cast<std::uint32_t>(family));
  messages_.number(NFTA_TPROXY_REG_ADDR, registers);
  messages_.number(NFTA_TPROXY_REG_PORT, port_register);
  end_expression();
  accept();
}

void Batch::verdict(int code, const char* chain) {
  expression("immediate");
  messages_.number(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
  messages_.open(NFTA_IMMEDIATE_DATA);
  messages_.open(NFTA_DATA_VERDICT);
  messages_.number(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
  if (chain != nullptr) messages_.text(NFTA_VERDICT_CHAIN, chain);
  messages_.close();
  messages_.close();
  end_expression();
  end_rule();
}

void Batch::reject(nft_reject_types type, std::uint8_t code) {
  expression("reject");
  messages_.number(NFTA_REJECT_TYPE, type);
  messages_.attribute(NFTA_REJECT_ICMP_CODE, as_bytes(code));
  end_expression();
  end_rule();
}

// The acknowledgement is asked for by an empty change, so that one answer tells of the whole batch.
std::string Batch::finish() {
  begin(NFT_MSG_NEWTABLE, NLM_F_ACK);
  messages_.text(NFTA_TABLE_NAME, kTable);
  messages_.end();
  boundary(NFNL_MSG_BATCH_END);
  return messages_.bytes();
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

void refusals(Batch& batch) {
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
