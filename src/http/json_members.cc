// Walks over a JSON text once; what is below the first level is only passed over.
#include "http/json_members.h"

#include <cstdint>

namespace http {

namespace {

constexpr int kDeepest = 64;

void add_utf8(std::uint32_t code, std::string& out) {
  const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  bool object(std::vector<JsonMember>& members) {
    return next('{') && (next('}') || members_of(members)) && at_end();
  }

 private:
  bool members_of(std::vector<JsonMember>& members) {
    do {
      JsonMember member;
      space();
      if (!string(member.name) || !next(':')) return false;
      space();
      member.at = at_;
      const bool text = peek() == '"';
      if (text ? !string(member.value) : !value(1)) return false;
      member.size = at_ - member.at;
      if (!text) member.value = text_.substr(member.at, member.size);
      members.push_back(std::move(member));
    } while (next(','));
    return next('}');
  }

  bool value(int depth) {
    space();
    if (depth > kDeepest) return false;
    if (peek() == '{') return list('}', depth);
    if (peek() == '[') return list(']', depth);
    std::string ignored;
    return peek() == '"' ? string(ignored) : word();
  }

  bool list(char end, int depth) {
    ++at_;
    if (next(end)) return true;
    do {
      std::string ignored;
      space();
      if (end == '}' && (!string(ignored) || !next(':'))) return false;
      if (!value(depth + 1)) return false;
    } while (next(','));
    return next(end);
  }

  // A number, true, false or null; what exactly plays no part.
  bool word() {
    const std::size_t from = at_;
    while (at_ < text_.size() && !std::string_view(",]} \t\r\n\"{[:").contains(text_[at_])) ++at_;
    return at_ > from;
  }

  bool string(std::string& out) {
    if (peek() != '"') return false;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') return ++at_, true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') {
        out += c;
      } else if (!escape(out)) {
        return false;
      }
    }
    return false;
  }

  // At a backslash; afterwards at the last byte of the escape.
  bool escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (++at_ >= text_.size()) return false;
    if (text_[at_] != 'u') {
      const auto which = kFrom.find(text_[at_]);
      if (which == std::string_view::npos) return false;
      out += kTo[which];
      return true;
    }
    std::uint32_t code = 0;
    if (!four_digits(code)) return false;
    if (code >= 0xDC00 && code < 0xE000) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (text_.substr(at_ + 1, 2) != "\\u") return false;
      at_ += 2;
      if (!four_digits(low) || low < 0xDC00 || low >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    add_utf8(code, out);
    return true;
  }

  // Behind the `u` that it stands at.
  bool four_digits(std::uint32_t& code) {
    if (text_.size() - at_ < 5) return false;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[++at_];
      const char low = static_cast<char>(c | 0x20);
      const bool digit = c >= '0' && c <= '9';
      if (!digit && (low < 'a' || low > 'f')) return false;
      code = code << 4 | static_cast<std::uint32_t>(digit ? c - '0' : low - 'a' + 10);
    }
    return true;
  }

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }
  // Passes over that character, where it is the next one.
  bool next(char c) {
    space();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    space();
    return at_ == text_.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<JsonMember>> json_members(std::string_view text) {
  std::vector<JsonMember> members;
  if (!Walk(text).object(members)) return std::nullopt;
  return members;
}

}  // namespace http
