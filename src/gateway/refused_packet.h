// One message of the kernel's netfilter log, read strictly: its inside was made by hostile code.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace gateway {

// A packet that was refused: where it was going. `port` is 0 where the protocol has none or it was
// not to be seen.
struct RefusedPacket {
  policy::Address to;
  std::uint16_t port = 0;
  std::uint8_t protocol = 0;  // IPPROTO_…
  bool operator==(const RefusedPacket&) const = default;
};

// Reads one datagram of NETLINK_NETFILTER (messages of nfnetlink_log). False when something in it
// is malformed; what came before it is kept.
[[nodiscard]] bool read_refused(std::string_view bytes, std::vector<RefusedPacket>& packets);
// The packet's own bytes, from the IP header on.
[[nodiscard]] bool read_packet(std::string_view bytes, RefusedPacket& packet);

}  // namespace gateway
