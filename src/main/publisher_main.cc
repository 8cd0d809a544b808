// cerco-publisher: the process behind one published port.
//
// SECURITY. It trusts the supervisor's frames. Both sides of what it copies are hostile: any
// process of this host may connect, and the code inside answers. It parses nothing but one byte a
// connection, takes no descriptor from inside, holds at most 128 KiB a connection and 64
// connections, and opens nothing: its listener and the ways inside are handed to it. What goes
// inside is one end of a pair of Unix sockets, never a socket of the host's network. It confines
// itself in publish/serve.cc (shut_in: a uid of its own, no capability, no path, its own seccomp
// list) before the first byte.
#include "confine/confine.h"
#include "os/os.h"
#include "publish/publish.h"

int main() {
  const std::uint32_t id = os::effective_uid() == 0 ? confine::kPublisherId : 0;
  return publish::serve(ipc::Channel(base::Fd(publish::kFdControl)), base::Fd(publish::kFdListener),
                        id);
}
