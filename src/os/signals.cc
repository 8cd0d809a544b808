// Signals as something to read.
#include "os/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace os {

base::Result<base::Fd> signal_descriptor(std::span<const int> numbers) {
  sigset_t wanted;
  ::sigemptyset(&wanted);
  for (const int number : numbers) {
    struct sigaction now = {};
    if (::sigaction(number, nullptr, &now) != 0) return base::system_error("sigaction");
    if (now.sa_handler != SIG_IGN) ::sigaddset(&wanted, number);
  }
  if (::sigprocmask(SIG_BLOCK, &wanted, nullptr) != 0) return base::system_error("sigprocmask");
  base::Fd fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.open()) return base::system_error("signalfd");
  return fd;
}

base::Result<std::optional<int>> next_signal(int descriptor) {
  struct signalfd_siginfo came = {};
  ssize_t got = -1;
  do {
    got = ::read(descriptor, &came, sizeof came);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof came) return std::optional<int>(static_cast<int>(came.ssi_signo));
  if (got < 0 && errno == EAGAIN) return std::optional<int>();
  return base::system_error("read signal");
}

void ignore_sigpipe() {
  (void)::signal(SIGPIPE, SIG_IGN);
}

}  // namespace os
