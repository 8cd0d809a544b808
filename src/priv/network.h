// The inside of a sandbox's network namespace: its one interface, and the sockets that catch what
// leaves.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/namespaces.h"

namespace priv {

// Addresses in network order. `own` is the source of whatever leaves; the gateway's sockets are
// bound to `gateway`, which is no address of the interface, so that a server of the workload may
// use every port on 127.0.0.1 and on `own`.
struct NamespaceNetwork {
  std::array<std::uint8_t, 4> own4 = {198, 18, 0, 2};
  std::array<std::uint8_t, 16> own6{};
  std::array<std::uint8_t, 4> gateway4 = {198, 18, 0, 1};
  std::array<std::uint8_t, 16> gateway6{};
  // A kernel of its own lies behind a tap. It tells the link of its multicast groups and asks whose
  // its addresses are (RFC 3810, RFC 4862): nobody's attempt, and so dropped without being counted.
  bool guest = false;
};
inline constexpr std::uint16_t kCapturePort = 65533;  // outside of the ephemeral range
inline constexpr std::uint16_t kDnsPort = 53;

// rtnetlink messages: lo up, own addresses, and routes that make every address local. Pure.
[[nodiscard]] std::string interface_messages(const NamespaceNetwork& network);

// Ports below 1024 need no right in this network namespace. `proc` is a procfs that can be written.
// Safe: refused unless the namespace is the process's own. [between clone and exec]
[[nodiscard]] base::Status free_low_ports(Badge badge, const Inside& inside, int proc);

// Sockets of the gateway inside the caller's network namespace.
struct CatchingSockets {
  base::Fd tcp4, tcp6;          // listening, transparent
  base::Fd dns4, dns6;          // UDP, transparent, with the destination of each datagram
  base::Fd dns_tcp4, dns_tcp6;  // listening, transparent
  base::Fd refused;             // netfilter log group kRefusalGroup
};
// Safe: refused unless the namespace is the process's own. [between clone and exec]
[[nodiscard]] base::Result<CatchingSockets> open_catching_sockets(Badge badge, const Inside& inside,
                                                                  const NamespaceNetwork& network);

}  // namespace priv
