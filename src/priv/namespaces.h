// Namespaces: clone3(2), user maps, time offsets, host name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/base.h"
#include "priv/badge.h"

namespace priv {

// Says that this process lives in namespaces of its own, and which. Only clone_process makes one,
// in the child; what changes mounts or the network wants it, so that the host's own are never
// touched.
class Inside {
 public:
  [[nodiscard]] bool has(std::uint64_t flag) const { return (flags_ & flag) != 0; }

 private:
  explicit Inside(std::uint64_t flags) : flags_(flags) {}
  friend struct Cloned;
  friend base::Result<struct Cloned> clone_process(Badge, std::uint64_t, std::uint64_t, int);
  std::uint64_t flags_;
};

struct Cloned {
  pid_t pid = 0;              // 0 in the child
  Inside inside = Inside(0);  // in the child
};
// clone3(2) of this process, which must have one thread, with CLONE_NEW… flags `spaces` and
// `others` (CLONE_PARENT or 0); `cgroup` is the folder of a v2 group that the child starts in, or
// -1. Safe whatever the caller says: every flag makes the child weaker towards the host, any other
// flag is refused, and the child runs the caller's own code. [between clone and exec]
[[nodiscard]] base::Result<Cloned> clone_process(Badge badge, std::uint64_t spaces,
                                                 std::uint64_t others, int cgroup);

// A fresh user namespace for this process, which belongs to host uid `owner`; its maps are empty
// until write_user_maps. What the kernel counts per user (inotify, queued signals and messages) it
// counts for the owner too: were that root, one sandbox could use up what all others and root have.
// Ends with the parent, which must be asked about afterwards (end of file on a pipe).
// Safe: the process only loses, it keeps no right over anything that exists; owners below
// kFirstLease are refused. [between clone and exec]
[[nodiscard]] base::Status leave_user_namespace(Badge badge, std::uint32_t owner);

// Host uids and gids `first` … `first`+`count`-1 become 0 … count-1 in the user namespace of `pid`.
// Safe: refuses ranges below kFirstLease, so that no uid of the host itself ever appears inside.
[[nodiscard]] base::Status write_user_maps(Badge badge, pid_t pid, std::uint32_t first,
                                           std::uint64_t count);
// The user namespace of `pid`, as a descriptor.
[[nodiscard]] base::Result<base::Fd> user_namespace_of(Badge badge, pid_t pid);

// Enters the user namespace as its uid and gid 0 without supplementary groups.
// Safe: the kernel asks for CAP_SYS_ADMIN in it, and rights over everything outside end here.
// [between clone and exec]
[[nodiscard]] base::Status enter_user_namespace(Badge badge, const Inside& inside,
                                                int user_namespace);
// No further user namespace can be made by anyone in the caller's (user.max_user_namespaces = 0).
// `folder` is sys/user of a procfs that can be written. Safe: it only takes away. [between clone
// and exec]
[[nodiscard]] base::Status forbid_user_namespaces(Badge badge, const Inside& inside, int folder);

// Children of this process see monotonic and boot clocks that start at about zero now, so that the
// uptime of the host does not show. Safe: only children are changed. [between clone and exec]
[[nodiscard]] base::Status restart_clocks_for_children(Badge badge);

// Host name of the caller's UTS namespace, and an empty domain name. Safe: refused unless `inside`
// has a UTS namespace of its own. [between clone and exec]
[[nodiscard]] base::Status set_hostname(Badge badge, const Inside& inside, const std::string& name);

// The child gets SIGKILL when its parent's thread ends. [between clone and exec]
[[nodiscard]] base::Status die_with_parent(Badge badge);

}  // namespace priv
