// cerco-init: pid 1 of a sandbox. It starts commands, passes signals, reaps, and has files read and
// written by processes with the workload's rights, as frames of the control channel ask
// (base/frame.h).
#pragma once

#include "base/frame.h"

namespace init {

// Sends Ready on `control`, then serves it until its end or a malformed frame; returns the exit
// status. The caller is pid 1 of a pid namespace, and KillAll kills everything that it can see;
// where it is not (positive controls), KillAll reaches the groups of its commands only.
int run(int control);

// Serves one file session on `socket`, a SEQPACKET, until its end: puts and fetches below `root`,
// an open folder. No path leaves it, no link is followed. Returns the exit status.
int serve_files(int socket, int root, frame::Existing existing);

}  // namespace init
