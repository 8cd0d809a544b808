// What a start does more where gVisor's kernel stands between cerco-init and the host's: in the
// process that becomes runsc, within the same namespaces, tree and limits that a container has.
//
// runsc takes the tree that was built as its root. What only runsc may see lies below /dev and
// /proc, which gVisor's kernel covers with its own.
#pragma once

#include <string>

#include "sandbox/container/outer.h"
#include "sandbox/container/prepared.h"

namespace sandbox::gvisor {

// The OCI configuration: cerco-init at kInit as the first process, ids mapped from `owner` on, the
// folders of the working disk writable, all else read-only. Pure.
inline constexpr const char* kInit = "/run/cerco-init";
[[nodiscard]] std::string configuration(const plan::Plan& plan, std::uint32_t owner);

// Leaves the capture namespace for a second one with one interface, whose other end stays behind.
// `routes` is a netlink socket of the first, `proc` a procfs. [between clone and exec]
[[nodiscard]] base::Status make_network(const Prepared& prepared, const priv::Inside& inside,
                                        int proc, int routes);
// cerco-init from sealed memory into the tree, for its root alone.
[[nodiscard]] base::Status place_init(const Prepared& prepared, const priv::Inside& inside,
                                      int root, int init);
// Bundle, state folder, and the two mounts that runsc wants: a procfs that nothing covers a part
// of, and nothing at /proc/sys/net/core, which it takes for the host's network namespace.
[[nodiscard]] base::Status prepare(const Prepared& prepared, const priv::Inside& inside, int root);
// Becomes runsc, a program by descriptor. Returns on failure only.
[[nodiscard]] base::Status execute(const Prepared& prepared, const StartEnds& ends, int runsc);

}  // namespace sandbox::gvisor
