// Inside init only: the terminal of one command, and the bytes between it and the host's pipes.
#pragma once

#include <poll.h>

#include <array>
#include <expected>
#include <string>

#include "base/base.h"
#include "base/frame.h"
#include "init/command.h"

namespace init {

// Bytes that were read and could not be written yet: nothing more is read until they are.
struct Piece {
  std::string bytes;
  std::size_t written = 0;
  [[nodiscard]] bool empty() const { return bytes.empty(); }
};

// One pseudoterminal of the sandbox's own devpts. Nothing here waits: what cannot be read or
// written now is looked at again when poll(2) says so.
class Terminal {
 public:
  // Opens it with that size. `input` is copied to it until its end, which hangs it up; what it
  // shows goes to `output`. Errors: the step, as of a command that was not started.
  [[nodiscard]] static std::expected<Terminal, NotStarted> open(frame::Window window,
                                                                base::Fd input, base::Fd output);

  // The side that the command gets; to be let go once it has it, so that its end is seen.
  [[nodiscard]] int far_side() const { return far_side_.get(); }
  void let_go() { far_side_.reset(); }
  void resize(frame::Window window) const;

  static constexpr std::size_t kPolled = 3;
  [[nodiscard]] std::array<pollfd, kPolled> wants() const;
  void act(std::span<const pollfd, kPolled> polled);

  // The command has ended: what is shown already is still passed on, and then no more.
  void command_ended() { ended_ = true; }
  // Everything that is to be passed on has been, or nobody takes it.
  [[nodiscard]] bool over() const { return !master_.open(); }

 private:
  void read_input();
  void write_input();
  void read_output();
  void write_output();
  void hang_up();

  base::Fd master_;
  base::Fd far_side_;
  base::Fd input_;
  base::Fd output_;
  Piece typed_;
  Piece shown_;
  std::size_t after_end_ = 0;  // bytes read since command_ended()
  bool ended_ = false;
  bool let_go_ = false;  // nobody has the command's side open; poll(2) would say so all the time
  bool dry_ = false;     // nothing more comes: over once what is shown is written
};

}  // namespace init
