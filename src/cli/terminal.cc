// `-t`: what it asks for.
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <csignal>

namespace cli {
namespace {

constexpr std::size_t kMostKind = 64;
constexpr std::string_view kUnknownKind = "xterm";

bool is_kind(std::string_view text) {
  return !text.empty() && text.size() <= kMostKind && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '+' || c == '.' || c == '_';
  });
}

frame::Window window_of(int terminal) {
  const os::WindowSize size = os::window_size(terminal);
  return {size.rows, size.columns};
}

}  // namespace

base::Result<Front> Front::make(const World& world) {
  static constexpr std::array kResized = {SIGWINCH};
  base::Fd resized = TRY(os::signal_descriptor(kResized));
  return Front(world.in, std::move(resized), TRY(os::RawTerminal::make(world.in)));
}

base::Result<frame::Window> Front::window() const {
  while (TRY(os::next_signal(resized_.get()))) {
  }
  return window_of(terminal_);
}

bool LeavingKeys::heard(std::string& keys) {
  static constexpr char kFirst = 'P' & 0x1f;
  static constexpr char kSecond = 'Q' & 0x1f;
  std::string passed;
  for (const char key : keys) {
    if (first_ && key == kSecond) {
      keys = std::move(passed);
      return true;
    }
    if (std::exchange(first_, key == kFirst)) passed += kFirst;
    if (!first_) passed += key;
  }
  keys = std::move(passed);
  return false;
}

base::Result<std::optional<frame::Window>> wanted_terminal(const World& world, const Parsed& parsed,
                                                           Seat seat) {
  if (!parsed.has("--tty")) return std::optional<frame::Window>();
  if (seat == Seat::needed && !world.terminal[0]) {
    return base::bad_input("-t", "standard input is no terminal",
                           "leave -t out: streams are passed on without it");
  }
  return std::optional(window_of(world.in));
}

void pass_terminal_kind(const World& world, std::map<std::string, std::string>& env) {
  const auto kind = world.env.find("TERM");
  const bool known = kind != world.env.end() && is_kind(kind->second);
  env.emplace("TERM", known ? kind->second : std::string(kUnknownKind));
}

}  // namespace cli
