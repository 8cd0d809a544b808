// JSON into the tree: RFC 8259, strictly, with places and without duplicate keys.
#include <charconv>
#include <cmath>

#include "policy/tree.h"

namespace policy {
namespace {

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  base::Result<Node> read() {
    if (text_.size() > kMaxText) return fail("the policy is larger than 1 MiB");
    skip_space();
    Node root = TRY(value(0));
    skip_space();
    if (!at_end()) return fail("text after the end of the object");
    if (root.kind != Node::Kind::table) return fail("no object");
    return root;
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] Place here() const { return {line_, column_, {}}; }
  std::unexpected<base::Error> fail(std::string what) const {
    return fail(std::move(what), here());
  }
  std::unexpected<base::Error> fail(std::string what, const Place& place) const {
    return base::bad_input(place_text(file_, place), std::move(what), "expected JSON");
  }

  void advance(std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto byte = static_cast<unsigned char>(text_[at_++]);
      if (byte == '\n') {
        ++line_;
        column_ = 1;
      } else if (byte >> 6 != 2) {
        ++column_;
      }
    }
  }
  void skip_space() {
    while (!at_end() && std::string_view(" \t\r\n").contains(peek())) advance(1);
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    advance(word.size());
    return true;
  }

  base::Result<Node> value(int depth) {
    if (depth > kMaxDepth) return fail("more than 64 levels");
    Node node;
    node.place = here();
    switch (peek()) {
      case '{':
        TRY(object(node, depth));
        return node;
      case '[':
        TRY(array(node, depth));
        return node;
      case '"':
        node.kind = Node::Kind::string;
        node.text = TRY(string());
        return node;
      default:
        TRY(scalar(node));
        return node;
    }
  }

  base::Status scalar(Node& node) {
    if (take("true") || take("false")) {
      node.kind = Node::Kind::boolean;
      node.boolean = text_[at_ - 2] == 'u';
      return {};
    }
    if (take("null")) {
      node.kind = Node::Kind::null;
      return {};
    }
    return number(node);
  }

  base::Status object(Node& node, int depth) {
    node.kind = Node::Kind::table;
    advance(1);
    skip_space();
    if (take("}")) return {};
    while (true) {
      const Place place = here();
      if (peek() != '"') return fail("no key");
      std::string key = TRY(string());
      if (node.find(key) != nullptr)
        return fail("the key " + base::printable(key) + " stands twice", place);
      skip_space();
      if (!take(":")) return fail("no colon after a key");
      skip_space();
      node.members.push_back({std::move(key), place, TRY(value(depth + 1))});
      skip_space();
      if (take("}")) return {};
      if (!take(",")) return fail("no comma between two members");
      skip_space();
    }
  }

  base::Status array(Node& node, int depth) {
    node.kind = Node::Kind::array;
    advance(1);
    skip_space();
    if (take("]")) return {};
    while (true) {
      node.items.push_back(TRY(value(depth + 1)));
      skip_space();
      if (take("]")) return {};
      if (!take(",")) return fail("no comma between two items");
      skip_space();
    }
  }

  std::size_t digits(std::size_t from) const {
    std::size_t end = from;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') ++end;
    return end;
  }

  base::Status number(Node& node) {
    std::size_t end = at_ + (peek() == '-' ? 1 : 0);
    const std::size_t first = end;
    end = digits(first);
    if (end == first) return fail(at_end() ? "the text ends too early" : "no value");
    if (text_[first] == '0' && end > first + 1) return fail("a number that starts with 0");
    bool whole = true;
    const auto part = [&](std::size_t from) {
      whole = false;
      const std::size_t stop = digits(from);
      const bool some = stop > from;
      end = stop;
      return some;
    };
    if (end < text_.size() && text_[end] == '.' && !part(end + 1))
      return fail("a number without its fraction");
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      const bool sign = end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-');
      if (!part(end + (sign ? 2 : 1))) return fail("a number without its exponent");
    }
    const std::string_view literal = text_.substr(at_, end - at_);
    if (whole) {
      node.kind = Node::Kind::integer;
      const auto read =
          std::from_chars(literal.data(), literal.data() + literal.size(), node.integer);
      if (read.ec != std::errc()) return fail("a number that is too large");
    } else {
      node.kind = Node::Kind::real;
      const auto read = std::from_chars(literal.data(), literal.data() + literal.size(), node.real);
      if (read.ec != std::errc() || !std::isfinite(node.real))
        return fail("a number that is too large");
    }
    advance(literal.size());
    return {};
  }

  base::Result<std::uint32_t> four_digits() {
    std::uint32_t code = 0;
    const std::string_view four = text_.substr(at_, 4);
    const auto read = std::from_chars(four.data(), four.data() + four.size(), code, 16);
    if (four.size() != 4 || read.ec != std::errc() || read.ptr != four.data() + 4) {
      return fail("\\u without four hexadecimal digits");
    }
    advance(4);
    return code;
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xC0 | code >> 6);
    } else {
      if (code < 0x10000) {
        put(0xE0 | code >> 12);
      } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
      }
      put(0x80 | (code >> 6 & 0x3F));
    }
    put(0x80 | (code & 0x3F));
  }

  base::Status escape(std::string& out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const char letter = peek();
    if (const auto at = kLetters.find(letter); letter != '\0' && at != std::string_view::npos) {
      out.push_back(kMeanings[at]);
      advance(1);
      return {};
    }
    if (letter != 'u') return fail("an escape that JSON does not have");
    advance(1);
    std::uint32_t code = TRY(four_digits());
    if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
      const std::uint32_t low = TRY(four_digits());
      if (low < 0xDC00 || low > 0xDFFF) return fail("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code < 0xE000) return fail("half of a surrogate pair");
    append_utf8(out, code);
    return {};
  }

  base::Result<std::string> string() {
    advance(1);
    std::string out;
    while (!at_end()) {
      const auto byte = static_cast<unsigned char>(peek());
      if (byte == '"') {
        advance(1);
        return out;
      }
      if (byte < 0x20) return fail("a control character in a string");
      if (byte == '\\') {
        advance(1);
        TRY(escape(out));
        continue;
      }
      const std::size_t length = base::utf8_length(text_.substr(at_));
      if (length == 0) return fail("bytes that are no UTF-8");
      out += text_.substr(at_, length);
      advance(length);
    }
    return fail("a string without its end");
  }

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

base::Result<Node> read_json(std::string_view text, std::string_view file) {
  return JsonReader(text, file).read();
}

}  // namespace policy
