// A place in a text that is read once from front to back: what both readers stand on.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"
#include "policy/tree.h"

namespace policy {

class Cursor {
 public:
  // `language` is what errors expect: "JSON", "TOML".
  Cursor(std::string_view text, std::string_view file, std::string_view language)
      : text_(text), file_(file), language_(language) {}

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  // The next byte, or NUL at the end.
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] bool sees(std::string_view word) const { return rest().starts_with(word); }
  [[nodiscard]] Place here() const { return {line_, column_, {}}; }

  void advance(std::size_t bytes);
  // Passes the word when it comes next.
  bool take(std::string_view word);
  void skip(std::string_view characters);
  // Appends the UTF-8 character that comes next and passes it; bad_input for bytes that are none.
  [[nodiscard]] base::Status take_character(std::string& out);
  // Reads `count` hexadecimal digits and appends the code point.
  [[nodiscard]] base::Result<std::uint32_t> take_hex(std::size_t count);

  [[nodiscard]] std::unexpected<base::Error> fail(std::string what) const;
  [[nodiscard]] std::unexpected<base::Error> fail(std::string what, const Place& place) const;

 private:
  std::string_view text_;
  std::string_view file_;
  std::string_view language_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

// Appends a code point that is no surrogate and at most 10FFFF.
void append_utf8(std::string& out, std::uint32_t code);

}  // namespace policy
