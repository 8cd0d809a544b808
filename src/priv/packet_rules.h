// The packet rules of a sandbox's network namespace, as one batch of nf_tables messages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/network.h"

namespace priv {

// TCP to `ports` of addresses below `prefix`/`bits` is taken to the gateway; empty: to every port.
struct SteeredRange {
  bool v6 = false;
  std::array<std::uint8_t, 16> prefix{};  // IPv4 in the first four bytes
  unsigned bits = 0;
  std::vector<std::uint16_t> ports;
};

// Whether TCP to addresses that no rule watches for (metadata, private, never opened ones) is taken
// to the gateway as well.
enum class Public { refused, steered };

inline constexpr std::uint16_t kRefusalGroup = 1;   // netfilter log group of what was refused
inline constexpr std::uint32_t kLoggedBytes = 128;  // of each packet, from its network header

// The rules that hold from the start: loopback and the namespace's own addresses are left alone;
// DNS and steered TCP go to the gateway's sockets; all else is refused at once, counted exactly and
// logged. The log is limited to 100 a second for each kind of destination by itself (metadata,
// private, never opened, all other), so that a flood to one hides nothing that goes to another.
// There is no connection tracking. Pure.
[[nodiscard]] std::string capture_rules(const NamespaceNetwork& network,
                                        const std::vector<SteeredRange>& steered,
                                        Public others = Public::refused);
// A batch that changes what is steered, all of it at once; what is counted and logged stays as it
// is. Not after cut_rules(). Pure.
[[nodiscard]] std::string steering_rules(const NamespaceNetwork& network,
                                         const std::vector<SteeredRange>& steered, Public others);
// A batch that replaces these rules: only traffic within loopback and between own addresses is
// left.
[[nodiscard]] std::string cut_rules(const NamespaceNetwork& network);

struct RefusalCounters {
  std::uint64_t refused = 0;  // connection attempts and datagrams
  std::uint64_t logged = 0;   // of these, handed to the log
  std::uint64_t refused_ranges =
      0;  // of `refused`, those to metadata, private and never opened ones
  std::uint64_t logged_ranges = 0;
};
// From a netlink socket that was opened in the namespace. Safe: only reads.
[[nodiscard]] base::Result<RefusalCounters> read_refusals(Badge badge, int socket);

}  // namespace priv
