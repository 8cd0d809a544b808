// JSON into the tree: RFC 8259, strictly, with places and without duplicate keys.
#include <algorithm>
#include <charconv>

#include "policy/cursor.h"

namespace policy {
namespace {

class JsonReader : Cursor {
 public:
  JsonReader(std::string_view text, std::string_view file) : Cursor(text, file, "JSON") {}

  base::Result<Node> read() {
    skip_space();
    Node root = TRY(value(0));
    skip_space();
    if (!at_end()) return fail("text after the end of the object");
    if (root.kind != Node::Kind::table) return fail("no object");
    return root;
  }

 private:
  void skip_space() { skip(" \t\r\n"); }

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
    node.kind = Node::Kind::boolean;
    node.boolean = sees("true");
    if (take("true") || take("false")) return {};
    node.kind = Node::Kind::null;
    if (take("null")) return {};
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

  // The length of the digits that stand at `from` of what is left.
  [[nodiscard]] std::size_t digits(std::size_t from) const {
    const std::string_view text = rest().substr(std::min(from, rest().size()));
    return std::min(text.find_first_not_of("0123456789"), text.size());
  }

  base::Status number(Node& node) {
    const auto at = [&](std::size_t i) { return i < rest().size() ? rest()[i] : '\0'; };
    std::size_t end = peek() == '-' ? 1 : 0;
    const std::size_t whole = digits(end);
    if (whole == 0) return fail(at_end() ? "the text ends too early" : "no value");
    if (at(end) == '0' && whole > 1) return fail("a number that starts with 0");
    end += whole;
    bool integer = true;
    const auto take_part = [&](std::size_t before) {
      integer = false;
      const std::size_t count = digits(end + before);
      end += before + count;
      return count > 0;
    };
    if (at(end) == '.' && !take_part(1)) return fail("a number without its fraction");
    if (at(end) == 'e' || at(end) == 'E') {
      const bool sign = at(end + 1) == '+' || at(end + 1) == '-';
      if (!take_part(sign ? 2 : 1)) return fail("a number without its exponent");
    }
    return convert(node, end, integer);
  }

  base::Status convert(Node& node, std::size_t length, bool integer) {
    const char* first = rest().data();
    node.kind = integer ? Node::Kind::integer : Node::Kind::real;
    const auto read = integer ? std::from_chars(first, first + length, node.integer)
                              : std::from_chars(first, first + length, node.real);
    if (read.ec != std::errc()) return fail("a number that is too large");
    advance(length);
    return {};
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
    std::uint32_t code = TRY(take_hex(4));
    if (code >= 0xD800 && code < 0xDC00 && take("\\u")) {
      const std::uint32_t low = TRY(take_hex(4));
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
      TRY(take_character(out));
    }
    return fail("a string without its end");
  }
};

}  // namespace

base::Result<Node> read_json(std::string_view text, std::string_view file) {
  return JsonReader(text, file).read();
}

}  // namespace policy
