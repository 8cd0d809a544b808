// Waiting, and the time.
#include "os/wait.h"

#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace os {
namespace {

Instant now(clockid_t clock) {
  timespec time = {};
  ::clock_gettime(clock, &time);
  return {time.tv_sec, time.tv_nsec};
}

std::int64_t milliseconds_of(const Instant& instant) {
  return instant.seconds * 1000 + instant.nanoseconds / 1'000'000;
}

}  // namespace

Instant wall_time() {
  return now(CLOCK_REALTIME);
}
Instant steady_time() {
  return now(CLOCK_MONOTONIC);
}

base::Result<bool> wait_for(std::span<pollfd> descriptors, int milliseconds) {
  const std::int64_t end = milliseconds_of(steady_time()) + milliseconds;
  int left = milliseconds;
  while (true) {
    const int ready = ::poll(descriptors.data(), descriptors.size(), left);
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) return base::system_error("poll");
    if (milliseconds >= 0)
      left = static_cast<int>(std::max<std::int64_t>(0, end - milliseconds_of(steady_time())));
  }
}

base::Result<base::Fd> watch_folder(const std::string& path) {
  base::Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd.open()) return base::system_error("inotify_init1");
  constexpr std::uint32_t kWhat = IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR;
  if (::inotify_add_watch(fd.get(), path.c_str(), kWhat) < 0)
    return base::system_error("watch " + path);
  return fd;
}

}  // namespace os
