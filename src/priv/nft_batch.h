// A batch of nf_tables messages: a table, its chains and rules; within module priv.
#pragma once

// Before the kernel's own headers, which then leave out what these define.
#include <netinet/in.h>

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>

#include <cstdint>
#include <string>
#include <vector>

#include "priv/netlink.h"

namespace priv {

inline constexpr const char* kTable = "cerco";

// The type of a netlink message for one of NFT_MSG_….
[[nodiscard]] std::uint16_t nft(int message);

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
  Batch& reset_flag();
  Batch& icmp_error(std::uint8_t nfproto);
  Batch& limit();
  Batch& count(const char* name);
  void log();
  void tproxy(nft_registers registers, int family, std::string_view address, std::uint16_t port);
  void accept();
  void drop();
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

}  // namespace priv
