// The host's side of a tunnel as a process.
#include <array>

#include "tunnel/tunnel.h"

namespace tunnel {

base::Result<Started> start(const std::string& program, int in, int out) {
  auto [ours, theirs] = TRY(ipc::make_pair());
  const std::array<std::pair<int, int>, 3> fds = {std::pair(in, int{kFdIn}),
                                                  std::pair(theirs.fd(), int{kFdControl}),
                                                  std::pair(out, int{kFdOut})};
  const std::array<std::string, 1> argv = {program};
  os::Child child = TRY_IN("tunnel", os::spawn(argv, {}, fds));
  return Started{std::move(child), std::move(ours)};
}

}  // namespace tunnel
