// The terminal of one command: opening it, and copying without waiting.
#include "init/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace init {
namespace {

constexpr std::size_t kPiece = std::size_t{16} * 1024;
// What the kernel keeps of one terminal is less; whoever still writes is no part of the command.
constexpr std::size_t kMostAfterEnd = std::size_t{128} * 1024;

bool set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

bool would_wait() {
  return errno == EAGAIN || errno == EINTR;
}

// False when nobody takes it any more.
bool write_piece(int to, Piece& piece) {
  const ssize_t put =
      ::write(to, piece.bytes.data() + piece.written, piece.bytes.size() - piece.written);
  if (put < 0) return would_wait();
  piece.written += static_cast<std::size_t>(put);
  if (piece.written == piece.bytes.size()) piece = {};
  return true;
}

// The kernel's own struct (ioctl_tty(2)), which has fewer control characters than the C library's.
struct KernelModes {
  tcflag_t input, output, control, local;
  cc_t line;
  cc_t characters[19];
};

// Erasing takes whole characters, as LANG inside says.
bool erase_whole_characters(int terminal) {
  KernelModes modes = {};
  if (::ioctl(terminal, TCGETS, &modes) != 0) return false;
  modes.input |= IUTF8;
  return ::ioctl(terminal, TCSETS, &modes) == 0;
}

}  // namespace

std::expected<Terminal, NotStarted> Terminal::open(frame::Window window, base::Fd input,
                                                   base::Fd output) {
  const auto failed = [] { return std::unexpected(NotStarted{"terminal", errno}); };
  Terminal made;
  made.master_ = base::Fd(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  const int master = made.master_.get();
  int locked = 0;
  if (master < 0 || ::ioctl(master, TIOCSPTLCK, &locked) != 0) return failed();
  // By descriptor: no path is walked.
  made.far_side_ = base::Fd(::ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.far_side_.open() || !erase_whole_characters(made.far_side_.get())) return failed();
  if (!set_nonblocking(input.get()) || !set_nonblocking(output.get())) return failed();
  made.input_ = std::move(input);
  made.output_ = std::move(output);
  made.resize(window);
  return made;
}

void Terminal::resize(frame::Window window) const {
  const winsize size = {window.rows, window.columns, 0, 0};
  if (master_.open()) (void)::ioctl(master_.get(), TIOCSWINSZ, &size);
}

std::array<pollfd, Terminal::kPolled> Terminal::wants() const {
  std::array<pollfd, kPolled> wanted = {{{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}};
  if (over()) return wanted;
  if (typed_.empty()) wanted[0] = {input_.get(), POLLIN, 0};
  short of_master = 0;
  if (!typed_.empty()) of_master |= POLLOUT;
  if (shown_.empty() && !dry_ && !let_go_) of_master |= POLLIN;
  // Asked for nothing, a terminal that was hung up would be announced again and again.
  if (of_master != 0) wanted[1] = {master_.get(), of_master, 0};
  // Also without anything to write: an error there says that nobody reads any more.
  wanted[2] = {output_.get(), static_cast<short>(shown_.empty() ? 0 : POLLOUT), 0};
  return wanted;
}

void Terminal::act(std::span<const pollfd, kPolled> polled) {
  if (over()) return;
  if ((polled[2].revents & (POLLERR | POLLNVAL)) != 0) return hang_up();
  if (polled[0].revents != 0) read_input();
  if ((polled[1].revents & POLLOUT) != 0) write_input();
  if ((polled[1].revents & POLLHUP) != 0) typed_ = {};
  // What is typed shows whether somebody has it open again.
  if (polled[1].revents != 0 && shown_.empty()) read_output();
  if (!shown_.empty()) write_output();
  while (!over() && ended_ && !dry_ && shown_.empty()) {
    read_output();
    if (!shown_.empty()) write_output();
  }
  if (dry_ && shown_.empty()) hang_up();
}

void Terminal::read_input() {
  typed_.bytes.resize(kPiece);
  const ssize_t got = ::read(input_.get(), typed_.bytes.data(), kPiece);
  const bool later = got < 0 && would_wait();
  typed_.bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  // Whoever types is gone. What is shown is nobody's then, unless the command is over anyway.
  if (got <= 0 && !later && !ended_) hang_up();
  if (got <= 0 && !later) input_.reset();
}

void Terminal::write_input() {
  // A terminal that nobody has open takes nothing: what is typed at it is lost.
  if (!over() && !write_piece(master_.get(), typed_)) typed_ = {};
}

void Terminal::read_output() {
  if (over()) return;
  shown_.bytes.resize(kPiece);
  const ssize_t got = ::read(master_.get(), shown_.bytes.data(), kPiece);
  const bool later = got < 0 && would_wait();
  shown_.bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (got > 0 && ended_) after_end_ += static_cast<std::size_t>(got);
  // EIO: nobody has it open, which is no reason to hang the command up. Once that is over, nothing
  // to be read is the end: the kernel has handed over what was written before.
  let_go_ = got <= 0 && !later;
  if (ended_ && (got <= 0 || after_end_ > kMostAfterEnd)) dry_ = true;
}

void Terminal::write_output() {
  if (!over() && !write_piece(output_.get(), shown_)) hang_up();
}

// Its session gets SIGHUP from the kernel, and whoever has it open an error.
void Terminal::hang_up() {
  master_.reset();
  far_side_.reset();
  input_.reset();
  output_.reset();
  typed_ = shown_ = {};
}

}  // namespace init
