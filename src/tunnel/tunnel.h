// The control channel of cerco-init over one byte stream (two pipes, a virtio port, a vsock).
//
// Where cerco-init cannot be handed descriptors, a tunnel stands at each end: messages go over as
// they are, and each descriptor that comes with one becomes a numbered channel. On the host's side
// the descriptor is read and written by the tunnel; inside, a pipe or socket of its kind is made in
// its place. Channels do not wait for each other: each has a window that its receiver opens again
// as it gets rid of what came.
#pragma once

#include <string>

#include "base/base.h"
#include "ipc/ipc.h"
#include "os/os.h"

namespace tunnel {

enum class Side { host, inside };

// What one end has: the byte stream, which may be one descriptor for both ways, and a SEQPACKET to
// the supervisor or to cerco-init.
struct Ends {
  int in = -1;
  int out = -1;
  int control = -1;
};

// Serves until the control channel or the stream ends, or the other end writes nonsense. After the
// end of the stream what has come for the host's descriptors is still written to them, for as long
// as the control channel is open. Returns the exit status of the process: 0 for an end, 1 for
// nonsense or a failure. SIGPIPE must be ignored or blocked. What an Ended frame announces reaches
// the host's descriptors before the frame itself: all that the command had written.
[[nodiscard]] int serve(Side side, Ends ends);

// Descriptors of cerco-tunnel, which is the host's side (main/tunnel_main.cc).
enum : int { kFdIn = 3, kFdControl = 4, kFdOut = 5 };

// The host's side as a process of its own that has nothing but these descriptors, and ours of its
// control channel, which is spoken to as if it were cerco-init's. `program` is cerco-tunnel's path.
struct Started {
  os::Child child;
  ipc::Channel control;
};
[[nodiscard]] base::Result<Started> start(const std::string& program, int in, int out);

}  // namespace tunnel
