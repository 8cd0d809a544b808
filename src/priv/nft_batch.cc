// A batch of nf_tables messages.
#include "priv/nft_batch.h"

// Before the kernel's own headers, which then leave out what these define.
#include <netinet/tcp.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#include "priv/packet_rules.h"

namespace priv {

namespace {

constexpr std::int32_t kBeforeRouting = -150;  // priority "mangle": where TPROXY is looked for
constexpr std::uint32_t kInetService = 13;  // nft's own number for a port, so that it prints as one
constexpr std::uint8_t kUnreachable4 = 3;   // ICMP and ICMPv6 types
constexpr std::uint8_t kUnreachable6 = 1;
constexpr std::uint32_t kRatePerSecond = 100;
constexpr std::uint32_t kBurst = 200;

std::string port_bytes(std::uint16_t port) {
  return {static_cast<char>(port >> 8), static_cast<char>(port & 0xFF)};
}

}  // namespace

std::uint16_t nft(int message) {
  return static_cast<std::uint16_t>((NFNL_SUBSYS_NFTABLES << 8) | message);
}

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
  for (unsigned bit = 0; bit < bits; ++bit) {
    kept[bit / 8] = static_cast<char>(kept[bit / 8] | 0x80 >> (bit % 8));
  }
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

Batch& Batch::reset_flag() {
  meta(NFT_META_L4PROTO, IPPROTO_TCP);
  load(NFT_PAYLOAD_TRANSPORT_HEADER, 13, 1);
  mask(as_bytes(std::uint8_t{TH_RST}));
  compare(NFT_CMP_NEQ, as_bytes(std::uint8_t{0}));
  return *this;
}

// Destination unreachable, of either family.
Batch& Batch::icmp_error(std::uint8_t nfproto) {
  const bool v6 = nfproto == NFPROTO_IPV6;
  meta(NFT_META_NFPROTO, nfproto);
  meta(NFT_META_L4PROTO, v6 ? std::uint8_t{IPPROTO_ICMPV6} : std::uint8_t{IPPROTO_ICMP});
  load(NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1);
  compare(NFT_CMP_EQ, as_bytes(v6 ? kUnreachable6 : kUnreachable4));
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

void Batch::accept() {
  verdict(NF_ACCEPT, nullptr);
}

void Batch::drop() {
  verdict(NF_DROP, nullptr);
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

}  // namespace priv
