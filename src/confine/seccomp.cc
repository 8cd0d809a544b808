// Puts a filter on the calling thread.
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "confine/confine.h"

namespace confine {

Outcome install(std::span<const sock_filter> filter) {
  if (filter.empty() || filter.size() > BPF_MAXINSNS)
    return std::unexpected(Failure{"seccomp", EINVAL});
  const sock_fprog program = {static_cast<unsigned short>(filter.size()),
                              const_cast<sock_filter*>(filter.data())};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    return std::unexpected(Failure{"seccomp", errno});
  }
  return {};
}

}  // namespace confine
