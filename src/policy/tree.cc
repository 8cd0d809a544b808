// Small parts of the tree that both readers share.
#include "policy/tree.h"

#include <fmt/format.h>

namespace policy {

const Node* Node::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

std::string_view kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return "a boolean";
    case Node::Kind::integer:
      return "an integer";
    case Node::Kind::real:
      return "a fraction";
    case Node::Kind::string:
      return "a string";
    case Node::Kind::array:
      return "a list";
    case Node::Kind::table:
      return "a table";
    case Node::Kind::other:
      return "a date or time";
  }
  return "";
}

std::string place_text(std::string_view file, const Place& place) {
  if (!place.flag.empty()) return place.flag;
  return fmt::format("{}:{}:{}", file, place.line, place.column);
}

}  // namespace policy
