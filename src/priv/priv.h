// Every privileged act of cerco, one header a facility. Only sandbox and supervisor include this.
//
// Functions that are marked [between clone and exec] allocate nothing unless they fail; their
// caller then reports the Error and ends.
#pragma once

#include "priv/badge.h"           // IWYU pragma: export
#include "priv/cgroup.h"          // IWYU pragma: export
#include "priv/cgroup_command.h"  // IWYU pragma: export
#include "priv/disk.h"            // IWYU pragma: export
#include "priv/disk_shelf.h"      // IWYU pragma: export
#include "priv/lease.h"           // IWYU pragma: export
#include "priv/mount.h"           // IWYU pragma: export
#include "priv/namespaces.h"      // IWYU pragma: export
#include "priv/netlink.h"         // IWYU pragma: export
#include "priv/network.h"         // IWYU pragma: export
#include "priv/own_space.h"       // IWYU pragma: export
#include "priv/packet_rules.h"    // IWYU pragma: export
#include "priv/scratch.h"         // IWYU pragma: export
#include "priv/tap.h"             // IWYU pragma: export
