// `-t`: the caller's terminal in front of the one that a command has inside.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/frame.h"
#include "cli/cli.h"
#include "os/os.h"

namespace cli {

// Whether the caller's terminal must be there: a detached command has its own without one.
enum class Seat { needed, optional };

// What -t asks for; nullopt where it was not given. bad_input when standard input is no terminal
// and one is needed.
[[nodiscard]] base::Result<std::optional<frame::Window>> wanted_terminal(const World& world,
                                                                         const Parsed& parsed,
                                                                         Seat seat);

// The caller's terminal while bytes go through as they are.
class Front {
 public:
  // Raw from here on, until restore() or the end.
  [[nodiscard]] static base::Result<Front> make(const World& world);
  // Readable when the size may have changed.
  [[nodiscard]] int resized() const { return resized_.get(); }
  // To be asked then: the size as it is now.
  [[nodiscard]] base::Result<frame::Window> window() const;
  void restore() { raw_.restore(); }

 private:
  Front(int terminal, base::Fd resized, os::RawTerminal raw)
      : terminal_(terminal), resized_(std::move(resized)), raw_(std::move(raw)) {}
  int terminal_;
  base::Fd resized_;
  os::RawTerminal raw_;
};

// Ctrl-P Ctrl-Q, by which one leaves a run that goes on. A Ctrl-P alone is passed on with what
// follows it.
class LeavingKeys {
 public:
  // Takes `keys` as they were typed; what is to be passed on is left in it. True: they were typed.
  [[nodiscard]] bool heard(std::string& keys);

 private:
  bool first_ = false;  // Ctrl-P came last, and is held back
};

// Puts the caller's TERM into a command's environment, unless a TERM stands there: the kind of
// terminal that bytes go to. What has not the form of one is "xterm".
void pass_terminal_kind(const World& world, std::map<std::string, std::string>& env);

}  // namespace cli
