// Where the supervisor begins: it leaves the caller's session and terminal, then serves one run.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "supervisor/run.h"

namespace supervisor {

// SECURITY: holds root's rights and the sandbox's handles. It trusts the caller only as far as
// verify() goes, reads frames and nothing else of a sandbox, opens no network socket, and holds no
// secret once the broker has them. It ends its sandbox when the caller's channel ends.
int serve(ipc::Channel caller, Verify verify) {
  // A key press at the caller's terminal is for the caller, which passes signals on as messages.
  (void)::setsid();
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return 1;
  return Run(std::move(caller), verify).serve();
}

}  // namespace supervisor
