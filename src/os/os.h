// System calls that need no right: each wrapper checks, retries EINTR, sets close-on-exec and
// returns an owner. One file a facility; this header is what others include.
#pragma once

#include "os/caller.h"          // IWYU pragma: export
#include "os/files.h"           // IWYU pragma: export
#include "os/fork.h"            // IWYU pragma: export
#include "os/interfaces.h"      // IWYU pragma: export
#include "os/kernel.h"          // IWYU pragma: export
#include "os/memory.h"          // IWYU pragma: export
#include "os/net.h"             // IWYU pragma: export
#include "os/own_namespaces.h"  // IWYU pragma: export
#include "os/packets.h"         // IWYU pragma: export
#include "os/process.h"         // IWYU pragma: export
#include "os/signals.h"         // IWYU pragma: export
#include "os/socket.h"          // IWYU pragma: export
#include "os/storage.h"         // IWYU pragma: export
#include "os/stream.h"          // IWYU pragma: export
#include "os/terminal.h"        // IWYU pragma: export
#include "os/tree.h"            // IWYU pragma: export
#include "os/wait.h"            // IWYU pragma: export
