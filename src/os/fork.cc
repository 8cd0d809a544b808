// A copy of this process that goes its own way.
#include "os/fork.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <vector>

namespace os {
namespace {

constexpr int kFailed = 125;

bool close_all_but(std::vector<int> keep) {
  std::ranges::sort(keep);
  int next = 3;
  for (const int fd : keep) {
    if (fd > next && ::syscall(SYS_close_range, next, fd - 1, 0) != 0) return false;
    next = std::max(next, fd + 1);
  }
  return ::syscall(SYS_close_range, next, ~0U, 0) == 0;
}

bool detach_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  return null >= 0 && ::dup2(null, 0) == 0 && ::dup2(null, 1) == 1;
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    (void)::sigaction(number, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

base::Result<Child> fork_child(std::span<const int> keep, const std::function<int()>& act) {
  const int pid = ::fork();
  if (pid < 0) return base::system_error("fork");
  if (pid == 0) {
    reset_signals();
    (void)::setsid();
    if (!detach_streams() || !close_all_but({keep.begin(), keep.end()})) ::_exit(kFailed);
    ::_exit(act());
  }
  base::Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  Child child(pid, std::move(pidfd));
  if (!child.running() || child.pidfd() < 0) return base::system_error("pidfd_open");
  return child;
}

void let_go_of_streams() {
  if (detach_streams()) (void)::dup2(0, 2);
}

}  // namespace os
