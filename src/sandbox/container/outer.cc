// The process between the starter and the sandbox: what must be done before the namespaces exist,
// and the user namespace, which has to exist before its maps can be written from outside. Started
// by an ordinary user it begins in a user namespace already, which then owns all the others.
#include "sandbox/container/outer.h"

#include <sched.h>
#include <unistd.h>

#include "sandbox/container/rights.h"
#include "sandbox/container/start_channel.h"

namespace sandbox {

namespace {

base::Status tell(int channel, NoteKind kind, int number) {
  Note note;
  note.kind = kind;
  note.number = number;
  return send_note(channel, note, {});
}

base::Status enter_cgroup(const Prepared& prepared, const priv::Groups& groups) {
  if (!prepared.enters_cgroup) return {};
  TRY_IN("EnterCgroup", groups.enter_v1());
  return {};
}

base::Status clone_namespaces(const Prepared& prepared, const StartEnds& ends) {
  if (prepared.clocks) TRY(priv::restart_clocks_for_children(Rights::badge()));
  const priv::Cloned inner =
      TRY(priv::clone_process(Rights::badge(), prepared.spaces, CLONE_PARENT, -1));
  if (inner.pid == 0) run_inner(prepared, inner.inside, ends);
  return tell(ends.channel, NoteKind::cloned, inner.pid);
}

base::Status map_users(const Prepared& prepared, const StartEnds& ends) {
  if (!prepared.user_space) return {};
  TRY(priv::leave_user_namespace(Rights::badge(), prepared.owner));
  return tell(ends.channel, NoteKind::user_space, 0);
}

base::Status carry_out(const Prepared& prepared, const priv::Groups& groups,
                       const StartEnds& ends) {
  TRY(priv::die_with_parent(Rights::badge()));
  TRY(enter_cgroup(prepared, groups));
  if (prepared.own_space) {
    TRY_IN("MapUsers", priv::map_own_ids(Rights::badge(), prepared.caller, kWorkload));
  }
  TRY_IN("CloneNamespaces", clone_namespaces(prepared, ends));
  TRY_IN("MapUsers", map_users(prepared, ends));
  return {};
}

}  // namespace

void run_outer(const Prepared& prepared, const priv::Groups& groups, const StartEnds& ends) {
  if (const auto done = carry_out(prepared, groups, ends); !done) {
    fail_start(ends.channel, done.error());
  }
  ::close(ends.channel);
  ::close(ends.control);
  for (const int stream : ends.streams) ::close(stream);
  // In the caller's own namespace it would count as a process of the sandbox.
  if (prepared.own_space) ::_exit(0);
  while (true) ::pause();
}

}  // namespace sandbox
