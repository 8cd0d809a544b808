// What an ordinary user may make of namespaces on this host, found out by trying.
#pragma once

namespace os {

struct OwnNamespaces {
  // How far a process came: a user namespace of its own, the other namespaces in it with the right
  // to use them, a procfs of the new pid namespace.
  enum class Reached { nothing, user_namespace, namespaces, proc };
  Reached reached = Reached::nothing;
  bool nf_tables = false;  // in the new network namespace
};
// Forks a process that tries and ends; this one must have one thread. `nothing` where that fails.
[[nodiscard]] OwnNamespaces try_own_namespaces();

}  // namespace os
