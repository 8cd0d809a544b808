// The host's last room on the disk of the state folder, which no sandbox may take; pure.
#pragma once

#include <chrono>
#include <cstdint>

namespace supervisor {

// Bytes, as statvfs(2) has them for one who is not root.
struct HostRoom {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
};

// Whether less than plan::kept_for_host() is left.
[[nodiscard]] bool host_is_full(HostRoom room);
// How long nobody needs to look again: until then not even several sandboxes that write as fast as
// memory does can have taken what is left for them.
[[nodiscard]] std::chrono::milliseconds look_again_after(HostRoom room);

}  // namespace supervisor
