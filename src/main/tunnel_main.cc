// cerco-tunnel: the host's end of a sandbox that can be reached by one byte stream alone.
//
// SECURITY. It reads what comes out of a sandbox and trusts none of it: every length, number and
// amount is checked, memory is bounded by what its own side has allowed, and the first thing that
// makes no sense ends it. It trusts the supervisor's messages. It holds the stream, the channel to
// the supervisor and the descriptors of the commands' streams, and can write to these alone: it has
// no file, no path, no network and no secret. It confines itself on the first line of run(), before
// the first byte from inside. A tunnel that is taken over can say what cerco-init could say, whose
// words the supervisor does not trust either.
#include <csignal>
#include <cstdio>

#include "confine/confine.h"
#include "tunnel/tunnel.h"

namespace {

base::Result<int> run() {
  const std::uint32_t id = os::effective_uid() == 0 ? confine::kTunnelId : 0;
  TRY(confine::shut_in(confine::Own::tunnel, id, {}));
  return tunnel::serve(tunnel::Side::host, {tunnel::kFdIn, tunnel::kFdOut, tunnel::kFdControl});
}

}  // namespace

int main() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const auto status = run();
  if (status) return *status;
  std::fprintf(stderr, "cerco-tunnel: %s\n", status.error().line().c_str());
  return 125;
}
