// cerco-init, pid 1 of every sandbox.
//
// SECURITY. It stands inside with the workload, so nothing of the host is in its memory, its
// environment or its descriptors but the control channel, 3. It trusts that channel alone, and
// parses nothing that comes from inside (file sessions and published ports are served by children
// with the workload's rights; what a terminal shows is copied as it is, with a bound). It holds
// CAP_SETUID, CAP_SETGID and CAP_KILL of the sandbox's user namespace, and a uid that the workload
// does not have. Files, mounts, the network and other processes' memory are out of its reach: its
// starter has put it under Landlock. It makes itself unreadable below, on the first line of main;
// the kernel keeps signals from inside away from pid 1. Its end is the end of every process inside.
//
// With the word `tunnel` the channel comes over its standard input and output (tunnel/tunnel.h):
// then pid 1 is the tunnel's end, which parses what the host says, and cerco-init its child.
#include <unistd.h>

#include <string_view>

#include "confine/confine.h"
#include "init/init.h"

int main(int count, char** words) {
  constexpr int kControl = 3;
  constexpr int kFailed = 125;
  if (!confine::not_dumpable()) return kFailed;
  if (count == 2 && std::string_view(words[1]) == "tunnel") {
    return confine::close_from(kControl) ? init::run_tunnelled(0, 1) : kFailed;
  }
  if (!confine::close_from(kControl + 1)) return kFailed;
  return init::run(kControl, ::getpid() == 1 ? init::Kills::everyone : init::Kills::commands);
}
