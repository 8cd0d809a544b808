// cerco-journal: the process that writes a run's events.
//
// SECURITY. It trusts the supervisor's frames, and nothing else: what the gateway and the broker
// hand in is checked member by member, since the gateway reads hostile bytes. It holds the
// journal's signing key, append-only descriptors of this run's file and of host.jsonl, and no
// network. It walks paths only until Open has come; then journal/serve.cc confines it (shut_in: a
// uid of its own, no capability, no path, its own seccomp list), before the first event is read.
#include "ipc/ipc.h"
#include "journal/journal.h"
#include "plan/plan.h"

int main() {
  return journal::serve(ipc::Channel(base::Fd(plan::kFdControl)));
}
