// Waiting for descriptors, for changes in a folder, and the time.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/base.h"

namespace os {

// Time as seconds and nanoseconds.
struct Instant {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;  // 0 … 999'999'999
  bool operator==(const Instant&) const = default;
};
[[nodiscard]] Instant wall_time();    // CLOCK_REALTIME, since 1970 in UTC
[[nodiscard]] Instant steady_time();  // CLOCK_MONOTONIC

// poll(2), retried on EINTR with what is left of the time; `milliseconds` -1: no limit. Whether
// something is ready.
[[nodiscard]] base::Result<bool> wait_for(std::span<pollfd> descriptors, int milliseconds);

// inotify(7) on a folder: readable when a file in it was written, made, moved or removed.
[[nodiscard]] base::Result<base::Fd> watch_folder(const std::string& path);

}  // namespace os
