// A capture namespace for a network stack that is not the kernel's own: gVisor's, a guest's.
//
// The stack's packets come by one interface, the first end of a pair, into a namespace that has the
// gateway's sockets and the packet rules of every sandbox. Its source address is NamespaceNetwork's
// own4; it has no IPv6.
#pragma once

#include <string>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/namespaces.h"
#include "priv/network.h"

namespace priv {

inline constexpr std::uint32_t kPairIndex = 100;  // of either end, in its namespace

// For the capture namespace, in the place of interface_messages: the gateway's addresses on lo, and
// routes that make every address local. Pure.
[[nodiscard]] std::string capturing_messages(const NamespaceNetwork& network);
// Up with the end in the capture namespace, and the one route that leads out of it: to own4. Pure.
[[nodiscard]] std::string uplink_messages(const NamespaceNetwork& network);
// For the namespace that the stack takes its interface from: lo up, a pair whose other end lies in
// the namespace behind the descriptor `capture`, own4 on it, and the gateway as the way to
// everything. Pure.
[[nodiscard]] std::string pair_messages(const NamespaceNetwork& network, int capture);

// New interfaces of the caller's network namespace have no IPv6. `proc` is a procfs that can be
// written. Safe: as free_low_ports. [between clone and exec]
[[nodiscard]] base::Status without_ipv6(Badge badge, const Inside& inside, int proc);
// Leaves the network namespace for an empty one; the descriptor is the one that was left.
// Safe: refused unless that was the process's own. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> second_network(Badge badge, const Inside& inside, int proc);

}  // namespace priv
