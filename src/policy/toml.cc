// TOML into the tree, by toml++.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>

#include "policy/tree.h"

namespace policy {
namespace {

Place place_of(const toml::source_region& region) {
  Place place;
  place.line = static_cast<int>(region.begin.line);
  place.column = static_cast<int>(region.begin.column);
  return place;
}

bool stands_before(const Place& a, const Place& b) {
  return a.line != b.line ? a.line < b.line : a.column < b.column;
}

Node convert(const toml::node& from);

void fill(const toml::table& from, Node& to) {
  to.kind = Node::Kind::table;
  for (const auto& [key, value] : from) {
    to.members.push_back({std::string(key.str()), place_of(key.source()), convert(value)});
  }
  // toml++ sorts keys by name; the first fault of the file is to be the one that is told.
  std::ranges::stable_sort(
      to.members, [](const Member& a, const Member& b) { return stands_before(a.place, b.place); });
}

void fill(const toml::array& from, Node& to) {
  to.kind = Node::Kind::array;
  for (const auto& item : from) to.items.push_back(convert(item));
}

Node convert(const toml::node& from) {
  Node to;
  to.place = place_of(from.source());
  to.kind = Node::Kind::other;
  if (const auto* table = from.as_table()) {
    fill(*table, to);
  } else if (const auto* array = from.as_array()) {
    fill(*array, to);
  } else if (const auto* text = from.as_string()) {
    to.kind = Node::Kind::string;
    to.text = text->get();
  } else if (const auto* integer = from.as_integer()) {
    to.kind = Node::Kind::integer;
    to.integer = integer->get();
  } else if (const auto* real = from.as_floating_point()) {
    to.kind = Node::Kind::real;
    to.real = real->get();
  } else if (const auto* boolean = from.as_boolean()) {
    to.kind = Node::Kind::boolean;
    to.boolean = boolean->get();
  }
  return to;
}

// Walks over strings and comments, so that what remains is structure.
class Structure {
 public:
  explicit Structure(std::string_view text) : text_(text) {}

  // The line (from 1) of the first key with more than kMaxDepth parts, or 0. toml++ bounds nested
  // values but not dotted keys, and each part is one level of recursion.
  int too_deep() {
    int dots = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') skip_line();
      if (c == '\n' || c == ',') dots = 0;
      if (c == '\n') ++line_;
      if (c == '.' && ++dots > kMaxDepth) return line_;
      ++at_;
    }
    return 0;
  }

 private:
  void skip_line() {
    while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
  }
  void skip_string(char quote) {
    const std::string triple(3, quote);
    const bool many_lines = text_.substr(at_).starts_with(triple);
    at_ += many_lines ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (many_lines ? text_.substr(at_).starts_with(triple) : c == quote) {
        at_ += many_lines ? 3 : 1;
        return;
      }
      if (c == '\n' && !many_lines) return;  // not TOML; the parser says so
      if (c == '\n') ++line_;
      at_ += c == '\\' && quote == '"' ? 2 : 1;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

std::unexpected<base::Error> at_place(std::string_view file, const Place& place, std::string what) {
  return base::bad_input(place_text(file, place), std::move(what), "expected TOML");
}

}  // namespace

base::Result<Node> read_toml(std::string_view text, std::string_view file) {
  if (text.size() > kMaxText) return at_place(file, {}, "the policy is larger than 1 MiB");
  if (const int line = Structure(text).too_deep(); line != 0) {
    return at_place(file, {line, 1, {}}, "a key of more than 64 parts");
  }
  const toml::parse_result result = toml::parse(text);
  if (!result) {
    const toml::parse_error& error = result.error();
    return at_place(file, place_of(error.source()),
                    base::printable(std::string(error.description()).substr(0, 200)));
  }
  Node root;
  fill(result.table(), root);
  return root;
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
