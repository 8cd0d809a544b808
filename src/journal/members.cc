// One pass over JSON text, without building a tree.
#include "journal/members.h"

#include <algorithm>

namespace journal {
namespace {

constexpr std::uint64_t kMostInteger = (1ULL << 53) - 1;

bool key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}
int hex_value(char c) {
  if (digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Each function moves `at` behind what it accepts, or leaves a reason in `problem`.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  [[nodiscard]] const char* problem() const { return problem_; }
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t at() const { return at_; }
  [[nodiscard]] std::string_view since(std::size_t start) const {
    return text_.substr(start, at_ - start);
  }

  void space() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool fail(const char* why) {
    problem_ = why;
    return false;
  }

  std::string_view key() {
    if (!take('"')) return fail("a member has no key"), std::string_view();
    const std::size_t start = at_;
    while (!at_end() && key_character(text_[at_])) ++at_;
    const std::string_view name = since(start);
    if (name.empty() || name.size() > 64 || !take('"')) {
      return fail("a key is not of a-z, 0-9 and _"), std::string_view();
    }
    return name;
  }

  bool value(int depth) {
    if (at_end()) return fail("a value is missing");
    switch (text_[at_]) {
      case '"':
        return string();
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      default:
        return number();
    }
  }

 private:
  bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return fail("a value is no JSON");
    at_ += expected.size();
    return true;
  }

  bool string() {
    ++at_;
    while (!at_end()) {
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c < 0x20) return fail("a string holds a raw control character");
      if (c == '\\') {
        if (!escape()) return false;
      } else if (c < 0x80) {
        ++at_;
      } else {
        const std::size_t length = base::utf8_length(text_.substr(at_));
        if (length == 0) return fail("a string is not UTF-8");
        at_ += length;
      }
    }
    return fail("a string does not end");
  }

  bool escape() {
    if (at_ + 1 >= text_.size()) return fail("a string does not end");
    const char c = text_[at_ + 1];
    if (c != 'u') {
      if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos)
        return fail("an unknown escape");
      at_ += 2;
      return true;
    }
    if (at_ + 6 > text_.size()) return fail("a string does not end");
    for (std::size_t i = at_ + 2; i < at_ + 6; ++i) {
      if (hex_value(text_[i]) < 0) return fail("an unknown escape");
    }
    at_ += 6;
    return true;
  }

  bool digits() {
    if (at_end() || !digit(text_[at_])) return fail("a value is no JSON");
    while (!at_end() && digit(text_[at_])) ++at_;
    return true;
  }

  bool number() {
    const bool negative = take('-');
    const std::size_t start = at_;
    if (!digits()) return false;
    const std::string_view whole = since(start);
    if (whole.size() > 1 && whole[0] == '0') return fail("a number has leading zeros");
    bool integer = true;
    if (take('.')) {
      integer = false;
      if (!digits()) return false;
    }
    if (take('e') || take('E')) {
      integer = false;
      if (!take('+')) take('-');
      if (!digits()) return false;
    }
    if (!integer) return true;
    const auto magnitude = base::parse_number(whole);
    if (!magnitude || *magnitude > kMostInteger) return fail("an integer is not below 2^53");
    return !negative || *magnitude != 0 || fail("a number is -0");
  }

  bool object(int depth) {
    if (depth >= Members::kMaxDepth) return fail("nested too deeply");
    ++at_;
    space();
    if (take('}')) return true;
    do {
      space();
      if (at_end() || text_[at_] != '"') return fail("a member has no key");
      if (!string()) return false;
      space();
      if (!take(':')) return fail("a member has no value");
      space();
      if (!value(depth + 1)) return false;
      space();
    } while (take(','));
    return take('}') || fail("an object does not end");
  }

  bool array(int depth) {
    if (depth >= Members::kMaxDepth) return fail("nested too deeply");
    ++at_;
    space();
    if (take(']')) return true;
    do {
      space();
      if (!value(depth + 1)) return false;
      space();
    } while (take(','));
    return take(']') || fail("an array does not end");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  const char* problem_ = "";
};

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// The code unit of "\uXXXX" at `at`, or nullopt when there is none.
std::optional<std::uint32_t> code_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return std::nullopt;
  std::uint32_t code = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const int value = hex_value(text[i]);
    if (value < 0) return std::nullopt;
    code = code << 4 | static_cast<std::uint32_t>(value);
  }
  return code;
}

// Decodes "\uXXXX", with its second half when it is a surrogate pair; gives the characters read.
std::size_t decode_unicode(std::string& out, std::string_view text, std::size_t at) {
  const std::uint32_t first = code_unit(text, at).value_or(0xFFFD);
  if (first < 0xD800 || first > 0xDFFF) {
    append_utf8(out, first);
    return 6;
  }
  const auto second = code_unit(text, at + 6);
  if (first < 0xDC00 && second && *second >= 0xDC00 && *second <= 0xDFFF) {
    append_utf8(out, 0x10000 + ((first - 0xD800) << 10) + (*second - 0xDC00));
    return 12;
  }
  append_utf8(out, 0xFFFD);
  return 6;
}

char plain_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;
  }
}

}  // namespace

base::Result<Members> Members::parse(std::string_view text) {
  Members result;
  Scanner scanner(text);
  while (!text.empty()) {
    const std::string_view key = scanner.key();
    if (key.empty()) return base::bad_input("event", scanner.problem(), {});
    if (result.has(key)) return base::bad_input("event", "a key appears twice", {});
    if (result.members_.size() == kMaxCount)
      return base::bad_input("event", "too many members", {});
    if (!scanner.take(':')) return base::bad_input("event", "a member has no value", {});
    const std::size_t start = scanner.at();
    if (!scanner.value(0)) return base::bad_input("event", scanner.problem(), {});
    result.members_.push_back({key, scanner.since(start)});
    if (scanner.at_end()) break;
    if (!scanner.take(',')) return base::bad_input("event", "members are not separated", {});
  }
  return result;
}

base::Result<Members> Members::parse_object(std::string_view text) {
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') {
    return base::bad_input("event", "no JSON object", {});
  }
  return parse(text.substr(1, text.size() - 2));
}

std::string_view Members::raw(std::string_view key) const {
  for (const Member& member : members_) {
    if (member.key == key) return member.value;
  }
  return {};
}

std::string Members::text(std::string_view key) const {
  const std::string_view value = raw(key);
  return value.starts_with('"') ? decode_string(value) : std::string();
}

std::optional<std::uint64_t> Members::number(std::string_view key) const {
  return base::parse_number(raw(key));
}

std::string decode_string(std::string_view json) {
  if (json.size() < 2) return {};
  const std::string_view text = json.substr(1, json.size() - 2);
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\' || at + 1 >= text.size()) {
      out += text[at++];
    } else if (text[at + 1] == 'u') {
      at += decode_unicode(out, text, at);
    } else {
      out += plain_escape(text[at + 1]);
      at += 2;
    }
  }
  return out;
}

}  // namespace journal
