// TOML 1.0 into the tree, with places and without duplicates.
//
// Own, since the toml++ of Debian 12 aborts on `[.a]` and has undefined behaviour for some
// characters outside of quotes. Tables follow the rules that tomllib of Python carries out.
#include "policy/toml_scalar.h"

namespace policy {
namespace {

struct KeyPart {
  std::string name;
  Place place;
};
using Key = std::vector<KeyPart>;

constexpr std::string_view kBlank = " \t";

class TomlReader : TomlScalar {
 public:
  TomlReader(std::string_view text, std::string_view file) : TomlScalar(text, file) {}

  base::Result<Node> read() {
    take("\xef\xbb\xbf");
    Node* table = &root_;
    while (true) {
      skip(kBlank);
      if (at_end()) return std::move(root_);
      if (sees("\n") || sees("\r") || sees("#")) {
        TRY(end_of_line());
        continue;
      }
      if (sees("[")) {
        ++section_;
        table = TRY(header());
      } else {
        TRY(key_value(*table, Nesting::statement, 0));
      }
      skip(kBlank);
      if (!at_end() && !sees("\n") && !sees("\r") && !sees("#")) {
        return fail("more text on the line of a value or header");
      }
    }
  }

 private:
  enum class Nesting { statement, inline_table };

  // A comment, if there is one, and the end of the line.
  base::Status end_of_line() {
    if (sees("#")) TRY(comment());
    if (at_end() || take("\n") || take("\r\n")) return {};
    return fail("a carriage return without its line feed");
  }

  // --- Keys --------------------------------------------------------------------------------

  base::Result<Key> key() {
    Key parts;
    while (true) {
      skip(kBlank);
      if (parts.size() == static_cast<std::size_t>(kMaxDepth))
        return fail("a key of more than 64 parts");
      KeyPart part = {{}, here()};
      if (sees("\"") || sees("'")) {
        if (sees("\"\"\"") || sees("'''")) return fail("a key of many lines");
        part.name = TRY(string());
      } else {
        part.name = TRY(bare_key());
      }
      parts.push_back(std::move(part));
      skip(kBlank);
      if (!take(".")) return parts;
    }
  }

  base::Result<std::string> bare_key() {
    static constexpr std::string_view kCharacters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const std::size_t length = std::min(rest().find_first_not_of(kCharacters), rest().size());
    if (length == 0) return fail("no key");
    std::string name(rest().substr(0, length));
    advance(length);
    return name;
  }

  std::unexpected<base::Error> twice(const KeyPart& part) const {
    return fail("the key " + base::printable(part.name.substr(0, 80)) + " stands twice",
                part.place);
  }

  // --- Headers -----------------------------------------------------------------------------

  base::Result<Node*> header() {
    const Place place = here();
    advance(1);
    const bool list = take("[");
    const Key parts = TRY(key());
    if (!take(list ? "]]" : "]")) return fail(list ? "a header without ]]" : "a header without ]");
    Node* table = &root_;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) table = TRY(step(*table, parts[i]));
    return list ? append_item(*table, parts.back(), place) : declare(*table, parts.back(), place);
  }

  // Into a table on the way to one that a header names, or into the last table of a list.
  base::Result<Node*> step(Node& table, const KeyPart& part) {
    Node* next = table.find(part.name);
    if (next == nullptr) next = &add(table, part, Node::Kind::table);
    if (next->kind == Node::Kind::array && !next->frozen) next = &next->items.back();
    if (next->kind != Node::Kind::table || next->frozen) return twice(part);
    return next;
  }

  base::Result<Node*> declare(Node& table, const KeyPart& part, const Place& place) {
    Node* node = table.find(part.name);
    if (node == nullptr) node = &add(table, part, Node::Kind::table);
    const bool taken = node->declared || node->frozen || node->dotted_in != 0;
    if (taken || node->kind != Node::Kind::table) return twice(part);
    node->declared = true;
    node->place = place;
    return node;
  }

  base::Result<Node*> append_item(Node& table, const KeyPart& part, const Place& place) {
    Node* node = table.find(part.name);
    if (node == nullptr) node = &add(table, part, Node::Kind::array);
    if (node->kind != Node::Kind::array || node->frozen) return twice(part);
    Node item;
    item.place = place;
    item.declared = true;
    node->items.push_back(std::move(item));
    return &node->items.back();
  }

  static Node& add(Node& table, const KeyPart& part, Node::Kind kind) {
    Node node;
    node.kind = kind;
    node.place = part.place;
    table.members.push_back({part.name, part.place, std::move(node)});
    return table.members.back().value;
  }

  // --- Values ------------------------------------------------------------------------------

  base::Status key_value(Node& table, Nesting nesting, int depth) {
    const Key parts = TRY(key());
    if (!take("=")) return fail("no = after a key");
    skip(kBlank);
    Node node = TRY(value(depth));
    Node* at = &table;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) at = TRY(dotted(*at, parts[i], nesting));
    if (at->find(parts.back().name) != nullptr) return twice(parts.back());
    at->members.push_back({parts.back().name, parts.back().place, std::move(node)});
    return {};
  }

  // Into a table of a dotted key, which must be one of this section's own making.
  base::Result<Node*> dotted(Node& table, const KeyPart& part, Nesting nesting) {
    Node* next = table.find(part.name);
    if (next == nullptr) {
      next = &add(table, part, Node::Kind::table);
      next->dotted_in = section_;
    }
    const bool other =
        nesting == Nesting::statement && next->dotted_in != 0 && next->dotted_in != section_;
    if (next->kind != Node::Kind::table || next->frozen || next->declared || other)
      return twice(part);
    next->dotted_in = section_;
    return next;
  }

  base::Result<Node> value(int depth) {
    if (depth > kMaxDepth) return fail("more than 64 levels");
    Node node;
    node.place = here();
    if (sees("[")) {
      TRY(array(node, depth));
    } else if (sees("{")) {
      TRY(inline_table(node, depth));
    } else if (sees("\"") || sees("'")) {
      node.kind = Node::Kind::string;
      node.text = TRY(string());
    } else {
      TRY(scalar(node));
    }
    node.frozen = true;
    return node;
  }

  // Blanks, comments and ends of lines, which may stand anywhere in a list.
  base::Status skip_lines() {
    while (true) {
      skip(kBlank);
      if (!sees("\n") && !sees("\r") && !sees("#")) return {};
      TRY(end_of_line());
    }
  }

  base::Status array(Node& node, int depth) {
    node.kind = Node::Kind::array;
    advance(1);
    while (true) {
      TRY(skip_lines());
      if (take("]")) return {};
      node.items.push_back(TRY(value(depth + 1)));
      TRY(skip_lines());
      if (take("]")) return {};
      if (!take(",")) return fail("no comma or ] after an item of a list");
    }
  }

  base::Status inline_table(Node& node, int depth) {
    node.kind = Node::Kind::table;
    advance(1);
    skip(kBlank);
    if (take("}")) return {};
    while (true) {
      skip(kBlank);
      TRY(key_value(node, Nesting::inline_table, depth + 1));
      skip(kBlank);
      if (take("}")) return {};
      if (!take(",")) return fail("no comma or } after a value of a table in braces");
    }
  }

  Node root_;
  int section_ = 1;
};

}  // namespace

base::Result<Node> read_toml(std::string_view text, std::string_view file) {
  return TomlReader(text, file).read();
}

Node read_value(std::string_view text, const Place& place) {
  Node node;
  if (auto parsed = read_toml("value = " + std::string(text), "");
      parsed && parsed->members.size() == 1 && parsed->members[0].key == "value") {
    node = std::move(parsed->members[0].value);
    if (node.kind != Node::Kind::table && node.kind != Node::Kind::array) node.raw = text;
  } else {
    node.kind = Node::Kind::string;
    node.text = text;
  }
  const auto mark = [&](auto&& self, Node& one) -> void {
    one.place = place;
    for (Node& item : one.items) self(self, item);
    for (Member& member : one.members) {
      member.place = place;
      self(self, member.value);
    }
  };
  mark(mark, node);
  return node;
}

}  // namespace policy
