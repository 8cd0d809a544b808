// Inside init only: connections to servers inside, for ports that are published.
#pragma once

#include <sys/types.h>

#include "base/frame.h"

namespace init {

// Forks a process that becomes connect.uid and connect.gid, reaches the port, says on `socket` how
// that went, gives up all else and copies. Returns its number, or -1 where no process could be had.
pid_t begin_connection(const frame::Connect& connect, int socket);

}  // namespace init
