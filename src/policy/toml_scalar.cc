// Strings, numbers and words of TOML 1.0.
#include "policy/toml_scalar.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace policy {
namespace {

// Digits of one base, single underscores between them allowed; the digits alone in `out`.
bool take_digits(std::string_view& text, std::string_view digits, std::string& out) {
  bool digit_before = false;
  while (!text.empty()) {
    const bool digit = digits.contains(text[0]);
    const bool underscore =
        text[0] == '_' && digit_before && text.size() > 1 && digits.contains(text[1]);
    if (!digit && !underscore) break;
    if (digit) out.push_back(text[0]);
    digit_before = digit;
    text.remove_prefix(1);
  }
  return digit_before;
}

constexpr std::string_view kDecimal = "0123456789";

struct Base {
  std::string_view prefix;
  std::string_view digits;
  int base;
};
constexpr Base kBases[] = {
    {"0x", "0123456789abcdefABCDEF", 16}, {"0o", "01234567", 8}, {"0b", "01", 2}};

bool read_integer(std::string_view digits, int base, bool negative, std::int64_t& out) {
  const std::string text = (negative ? "-" : "") + std::string(digits);
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

// An integer in a base other than ten: no sign.
bool read_based(std::string_view word, Node& node) {
  for (const Base& base : kBases) {
    if (!word.starts_with(base.prefix)) continue;
    word.remove_prefix(base.prefix.size());
    std::string digits;
    node.kind = Node::Kind::integer;
    return take_digits(word, base.digits, digits) && word.empty() &&
           read_integer(digits, base.base, false, node.integer);
  }
  return false;
}

bool read_number(std::string_view word, Node& node) {
  std::string text;
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.remove_prefix(1);
  if (word == "inf" || word == "nan") {
    node.kind = Node::Kind::real;
    node.real = word == "nan" ? std::numeric_limits<double>::quiet_NaN()
                              : std::numeric_limits<double>::infinity();
    if (negative) node.real = -node.real;
    return true;
  }
  if (!take_digits(word, kDecimal, text) || (text.size() > 1 && text[0] == '0')) return false;
  if (word.empty()) {
    node.kind = Node::Kind::integer;
    return read_integer(text, 10, negative, node.integer);
  }
  node.kind = Node::Kind::real;
  if (word.starts_with('.')) {
    text.push_back('.');
    word.remove_prefix(1);
    if (!take_digits(word, kDecimal, text)) return false;
  }
  if (word.starts_with('e') || word.starts_with('E')) {
    text.push_back('e');
    word.remove_prefix(1);
    if (word.starts_with('+') || word.starts_with('-')) {
      if (word[0] == '-') text.push_back('-');
      word.remove_prefix(1);
    }
    if (!take_digits(word, kDecimal, text)) return false;
  }
  const auto read = std::from_chars(text.data(), text.data() + text.size(), node.real);
  if (negative) node.real = -node.real;
  return word.empty() && read.ec == std::errc();
}

// The form of a date or time is not looked at further: no key takes one.
bool looks_like_time(std::string_view word) {
  const auto digits = std::min(word.find_first_not_of(kDecimal), word.size());
  return (digits == 4 && word.substr(4).starts_with('-')) ||
         (digits == 2 && word.substr(2).starts_with(':'));
}

}  // namespace

base::Status TomlScalar::character(std::string& out) {
  const auto byte = static_cast<unsigned char>(peek());
  if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
    return fail(at_end() ? "the text ends too early" : "a control character");
  }
  return take_character(out);
}

base::Status TomlScalar::comment() {
  std::string ignored;
  while (!at_end() && !sees("\n") && !sees("\r\n")) TRY(character(ignored));
  return {};
}

base::Status TomlScalar::escape(std::string& out) {
  static constexpr std::string_view kLetters = "btnfr\"\\";
  static constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
  if (const auto at = kLetters.find(peek()); !at_end() && at != std::string_view::npos) {
    out.push_back(kMeanings[at]);
    advance(1);
    return {};
  }
  const bool four = take("u");
  if (!four && !take("U")) return fail("an escape that TOML does not have");
  const std::uint32_t code = TRY(take_hex(four ? 4 : 8));
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return fail("an escape of no character");
  append_utf8(out, code);
  return {};
}

base::Status TomlScalar::one_line(std::string& out, char quote) {
  while (true) {
    if (!at_end() && peek() == quote) {
      advance(1);
      return {};
    }
    if (quote == '"' && take("\\")) {
      TRY(escape(out));
    } else if (at_end() || sees("\n") || sees("\r\n")) {
      return fail("a string without its end");
    } else {
      TRY(character(out));
    }
  }
}

// A backslash at the end of a line takes all white space after it away.
bool TomlScalar::take_line_ending_backslash() {
  const std::string_view after = rest().substr(1);
  const auto end = std::min(after.find_first_not_of(" \t"), after.size());
  if (!after.substr(end).starts_with('\n') && !after.substr(end).starts_with("\r\n")) return false;
  advance(1 + end);
  while (sees(" ") || sees("\t") || sees("\n") || sees("\r\n")) advance(1);
  return true;
}

base::Status TomlScalar::many_lines(std::string& out, char quote) {
  const std::string triple(3, quote);
  if (!take("\n")) take("\r\n");
  while (true) {
    if (sees(triple)) {
      // Up to two quotes before the last three belong to the text.
      for (int more = 0; more < 2 && sees(triple + quote); ++more) {
        out.push_back(quote);
        advance(1);
      }
      advance(3);
      return {};
    }
    if (at_end()) return fail("a string without its end");
    if (take("\n") || take("\r\n")) {
      out.push_back('\n');
    } else if (quote == '"' && sees("\\")) {
      if (take_line_ending_backslash()) continue;
      advance(1);
      TRY(escape(out));
    } else {
      TRY(character(out));
    }
  }
}

base::Result<std::string> TomlScalar::string() {
  std::string out;
  const char quote = peek();
  const bool triple = sees(std::string(3, quote));
  advance(triple ? 3 : 1);
  TRY(triple ? many_lines(out, quote) : one_line(out, quote));
  return out;
}

base::Status TomlScalar::scalar(Node& node) {
  const auto length = std::min(rest().find_first_of(" \t\r\n,]}#="), rest().size());
  const std::string_view word = rest().substr(0, length);
  if (word == "true" || word == "false") {
    node.kind = Node::Kind::boolean;
    node.boolean = word == "true";
  } else if (looks_like_time(word)) {
    node.kind = Node::Kind::other;
  } else if (!read_based(word, node) && !read_number(word, node)) {
    return fail(word.empty() ? "no value"
                             : "no value: " + base::printable(word.substr(0, 80)) +
                                   " (is it a string without quotes?)");
  }
  advance(length);
  return {};
}

}  // namespace policy
