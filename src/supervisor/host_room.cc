// The host's last room.
#include "supervisor/host_room.h"

#include <algorithm>

#include "plan/plan.h"

namespace supervisor {

namespace {

constexpr std::uint64_t kFastest = 4 << 20;  // bytes a millisecond, of all sandboxes together
constexpr std::uint64_t kSoonest = 5;        // milliseconds
constexpr std::uint64_t kLatest = 500;

}  // namespace

bool host_is_full(HostRoom room) {
  return room.free < plan::kept_for_host(room.total);
}

std::chrono::milliseconds look_again_after(HostRoom room) {
  const std::uint64_t kept = plan::kept_for_host(room.total);
  const std::uint64_t left = room.free > kept ? room.free - kept : 0;
  return std::chrono::milliseconds(std::clamp(left / kFastest, kSoonest, kLatest));
}

}  // namespace supervisor
