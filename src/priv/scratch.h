// Folders of the host under a layer that takes all changes (overlayfs over an idmapped mount).
#pragma once

#include <cstdint>
#include <string>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/namespaces.h"

namespace priv {

// A map of ids for mounts, as a user namespace that no process is in: files of the host's root
// appear as `first` + `workload`'s, those of host id `workload` as `first`'s, every other id n
// below 65535 as `first` + n. Safe: it gives rights over nothing by itself, and refuses ranges
// below kFirstLease, so that no file ever appears as an id of the host's own.
[[nodiscard]] base::Result<base::Fd> make_id_map(Badge badge, std::uint32_t first,
                                                 std::uint32_t workload);

// Gives a mount that is attached nowhere the map. Safe: refused unless the process has a mount
// namespace of its own, and the original is unchanged. EINVAL where its file system knows no such
// maps. [between clone and exec]
[[nodiscard]] base::Status map_ids(Badge badge, const Inside& inside, int mount, int id_map);

// Whose eyes a folder is read with.
enum class Reader { nobody, root };
// `lower` (a name in the folder `at`) read-only, as `reader` may read it: overlayfs asks on behalf
// of whoever mounted it beside who reads, so that what is closed to others stays closed even to
// those whom `lower` says to be the owners. `empty` is the name of an empty folder there. Safe: it
// shows no more than `lower` does. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> see_as(Badge badge, const Inside& inside, int at,
                                            const char* lower, const char* empty, Reader reader);
// `lower` under the layer `upper`, which takes all changes; `work` is an empty folder beside
// `upper`. All are names in the folder `at`. Safe: `lower` is never written; nosuid, nodev. Nothing
// that is written needs to outlive the mount. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> lay_over(Badge badge, const Inside& inside, int at,
                                              const char* lower, const char* upper,
                                              const char* work);

}  // namespace priv
