// What an ordinary user may make of namespaces on this host.
#include "os/own_namespaces.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "os/kernel.h"
#include "os/process.h"

namespace os {

namespace {

constexpr int kSpaces =
    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr int kNfTables = 8;  // beside Reached, in the exit status

bool makes_proc() {
  const base::Fd context(static_cast<int>(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC)));
  if (!context.open() ||
      ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return false;
  }
  const base::Fd made(static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
  return made.open();
}

int wait_for(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 0;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

// In a forked process. A pid namespace is for its children, so that one of these asks for proc.
int attempt() {
  if (::unshare(CLONE_NEWUSER) != 0) return static_cast<int>(OwnNamespaces::Reached::nothing);
  if (::unshare(kSpaces) != 0) return static_cast<int>(OwnNamespaces::Reached::user_namespace);
  const int more = has_nf_tables() ? kNfTables : 0;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(makes_proc() ? 1 : 0);
  const bool proc = child > 0 && wait_for(child) == 1;
  const auto reached = proc ? OwnNamespaces::Reached::proc : OwnNamespaces::Reached::namespaces;
  return static_cast<int>(reached) | more;
}

}  // namespace

OwnNamespaces try_own_namespaces() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(attempt());
  if (child < 0) return {};
  const int status = wait_for(child);
  return {static_cast<OwnNamespaces::Reached>(status & (kNfTables - 1)), (status & kNfTables) != 0};
}

}  // namespace os
