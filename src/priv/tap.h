// The card of a guest: a tap in a network namespace of its own, and the two ends' settings.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/network.h"

namespace priv {

// Locally administered. Each end knows the other's by heart, so that nobody need ask.
inline constexpr std::array<std::uint8_t, 6> kTapAddress = {0x02, 0x63, 0x65, 0x72, 0x63, 0x01};
inline constexpr std::array<std::uint8_t, 6> kCardAddress = {0x02, 0x63, 0x65, 0x72, 0x63, 0x02};
inline constexpr std::uint32_t kTapIndex = 4096;  // of the interface, beyond those that are there

// rtnetlink messages for a namespace whose only other side is a tap: lo up and routes that make
// every address local but the guest's own two, which lie behind the tap. Sent before and after the
// tap is there. Pure.
[[nodiscard]] std::string lonely_interface_messages();
[[nodiscard]] std::string tap_messages(const NamespaceNetwork& network);
// The same link seen from the guest, whose card has that index. Pure.
[[nodiscard]] std::string card_messages(const NamespaceNetwork& network, std::uint32_t index);

// A tap of index kTapIndex: whole frames, no offloads. It goes when its last descriptor does.
// Safe: refused unless the namespace is the process's own. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> make_tap(Badge badge, const Inside& inside);

}  // namespace priv
