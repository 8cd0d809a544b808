// cerco-init: pid 1 of a sandbox. It starts commands, passes signals, reaps, and has files read and
// written by processes with the workload's rights, as frames of the control channel ask
// (base/frame.h).
#pragma once

#include "base/frame.h"

namespace init {

// Whom KillAll reaches: all that there is in the pid namespace but pid 1 and the caller, or, where
// the namespace is shared with others (positive controls), the groups of the caller's commands.
enum class Kills { everyone, commands };

// Sends Ready on `control`, then serves it until its end or a malformed frame; returns the exit
// status. The caller has the namespace's orphans for children.
int run(int control, Kills kills);

// The same where the host is reached by a byte stream alone (tunnel/tunnel.h): the caller, pid 1,
// becomes the tunnel's end inside, without a capability and under a filter of its own, and its only
// child serves as cerco-init. The end of either is the end of both. The streams may be one
// descriptor. Returns the exit status.
int run_tunnelled(int in, int out);

// Serves one file session on `socket`, a SEQPACKET, until its end: puts and fetches below `root`,
// an open folder. No path leaves it, no link is followed. Returns the exit status.
int serve_files(int socket, int root, frame::Existing existing);

}  // namespace init
