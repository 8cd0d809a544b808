// A user namespace of an ordinary user, whose map has one id: the caller's own.
#pragma once

#include <cstdint>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/namespaces.h"

namespace priv {

struct Ids {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
// Effective ids of this process, to be asked before clone_into_own_space: in the new namespace they
// have no name until they are mapped.
[[nodiscard]] Ids own_ids();

// clone3(2) of this process, which must have one thread, into a fresh user namespace; `cgroup` is
// the folder of a v2 group that the child starts in, or -1.
// Safe: refused as root, so that root's uid never appears inside; the child gets rights over the
// new namespace alone and keeps none over anything that exists. [between clone and exec]
[[nodiscard]] base::Result<Cloned> clone_into_own_space(Badge badge, int cgroup);

// `outside` becomes `inside`, for uid and gid, in the caller's user namespace, and setgroups(2) is
// denied in it for good: the caller's supplementary groups stay, without names.
// Safe: the kernel takes no other ids than those of who made the namespace; uid 0 is refused. The
// process may be looked into by others of its uid from here on until it executes a program: files
// of proc that are not its own could not be written. [between clone and exec]
[[nodiscard]] base::Status map_own_ids(Badge badge, Ids outside, std::uint32_t inside);

}  // namespace priv
