// The terminal that a person sits at: its size, and its modes for as long as bytes go through as
// they are.
#pragma once

#include <cstdint>

#include "base/base.h"

namespace os {

struct WindowSize {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;
};
// Of a terminal; zeros where it does not say.
[[nodiscard]] WindowSize window_size(int terminal);

// Raw modes (termios(3), cfmakeraw): every key is a byte, none is a signal, nothing is echoed.
// Until restore(), at the latest its destruction; a signal that ends or stops this process gives
// the old modes back as well, and SIGCONT takes the raw ones again. One at a time in a process.
class RawTerminal {
 public:
  // `terminal` stays open as long as this. An error when it is no terminal.
  [[nodiscard]] static base::Result<RawTerminal> make(int terminal);
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&& other) = delete;
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal() { restore(); }
  // What was typed and not read is thrown away: it was meant for what is over, as are answers of
  // the terminal to what was sent to it. Idempotent.
  void restore();

 private:
  RawTerminal() = default;
  bool raw_ = false;
};

}  // namespace os
