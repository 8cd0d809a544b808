// Raw modes of a terminal, and the old ones back whatever ends the process.
#include "os/terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace os {
namespace {

// Whoever ends by one of these would leave the terminal raw. What cannot be caught is up to the
// shell.
constexpr std::array kEnding = {SIGABRT, SIGALRM, SIGBUS,  SIGFPE,    SIGHUP,  SIGILL,  SIGINT,
                                SIGIO,   SIGPROF, SIGPWR,  SIGQUIT,   SIGSEGV, SIGSYS,  SIGTERM,
                                SIGTRAP, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ, SIGSTKFLT};

// Signal handlers reach nothing else.
struct Kept {
  int terminal = -1;
  termios old = {};
  termios raw = {};
};
Kept kept;

// A process in the background may set modes as well while it blocks SIGTTOU.
void set_modes(int terminal, int when, const termios& modes) {
  sigset_t stops;
  sigset_t before;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTTOU);
  (void)::sigprocmask(SIG_BLOCK, &stops, &before);
  int done = -1;
  do {
    done = ::tcsetattr(terminal, when, &modes);
  } while (done != 0 && errno == EINTR);
  (void)::sigprocmask(SIG_SETMASK, &before, nullptr);
}

extern "C" void restore_and_end(int number) {
  if (kept.terminal >= 0) set_modes(kept.terminal, TCSANOW, kept.old);
  (void)::raise(number);  // SA_RESETHAND: by default now
}

extern "C" void restore_and_stop(int) {
  const int before = errno;
  if (kept.terminal >= 0) set_modes(kept.terminal, TCSANOW, kept.old);
  (void)::raise(SIGSTOP);
  errno = before;
}

extern "C" void take_again(int) {
  const int before = errno;
  if (kept.terminal >= 0) set_modes(kept.terminal, TCSANOW, kept.raw);
  errno = before;
}

void handle(int number, void (*handler)(int), int flags) {
  struct sigaction now = {};
  if (::sigaction(number, nullptr, &now) != 0 || now.sa_handler == SIG_IGN) return;
  struct sigaction wanted = {};
  wanted.sa_handler = handler;
  wanted.sa_flags = flags;
  (void)::sigaction(number, &wanted, nullptr);
}

void handle_all() {
  for (const int number : kEnding) {
    handle(number, restore_and_end, static_cast<int>(SA_RESETHAND));
  }
  handle(SIGTSTP, restore_and_stop, SA_RESTART);
  handle(SIGCONT, take_again, SA_RESTART);
}

void handle_none() {
  for (const int number : kEnding) handle(number, SIG_DFL, 0);
  handle(SIGTSTP, SIG_DFL, 0);
  handle(SIGCONT, SIG_DFL, 0);
}

}  // namespace

WindowSize window_size(int terminal) {
  winsize size = {};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

base::Result<RawTerminal> RawTerminal::make(int terminal) {
  if (::tcgetattr(terminal, &kept.old) != 0) return base::system_error("terminal");
  kept.raw = kept.old;
  ::cfmakeraw(&kept.raw);
  kept.terminal = terminal;
  handle_all();
  RawTerminal made;
  made.raw_ = true;
  set_modes(terminal, TCSADRAIN, kept.raw);
  return made;
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept : raw_(std::exchange(other.raw_, false)) {}

void RawTerminal::restore() {
  if (!std::exchange(raw_, false)) return;
  set_modes(kept.terminal, TCSAFLUSH, kept.old);
  handle_none();
  kept.terminal = -1;
}

}  // namespace os
