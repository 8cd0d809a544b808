// The parts of TOML that hold no other values: strings, numbers, words, comments.
#pragma once

#include <string>
#include <string_view>

#include "policy/cursor.h"

namespace policy {

class TomlScalar : public Cursor {
 public:
  TomlScalar(std::string_view text, std::string_view file) : Cursor(text, file, "TOML") {}

 protected:
  // Any of the four kinds of string; the first quote comes next.
  [[nodiscard]] base::Result<std::string> string();
  // true, false, a number, or a date or time (which becomes Kind::other).
  [[nodiscard]] base::Status scalar(Node& node);
  // From # up to the end of the line.
  [[nodiscard]] base::Status comment();

 private:
  [[nodiscard]] base::Status one_line(std::string& out, char quote);
  [[nodiscard]] base::Status many_lines(std::string& out, char quote);
  [[nodiscard]] base::Status escape(std::string& out);
  [[nodiscard]] bool take_line_ending_backslash();
  [[nodiscard]] base::Status character(std::string& out);
};

}  // namespace policy
