// Which values of two policies differ.
#include <algorithm>

#include "policy/policy.h"
#include "policy/tree.h"

namespace policy {
namespace {

bool same(const Node& one, const Node& other) {
  if (one.kind != other.kind || one.boolean != other.boolean || one.integer != other.integer ||
      one.real != other.real || one.text != other.text) {
    return false;
  }
  const auto same_member = [](const Member& left, const Member& right) {
    return left.key == right.key && same(left.value, right.value);
  };
  return std::ranges::equal(one.items, other.items, same) &&
         std::ranges::equal(one.members, other.members, same_member);
}

}  // namespace

std::vector<std::string> differences(const Policy& one, const Policy& other) {
  const Node left = tree_of(one);
  const Node right = tree_of(other);
  std::vector<std::string> keys;
  // Both trees have every key of the first two levels, in the same order.
  for (const Member& member : left.members) {
    const Node& there = *right.find(member.key);
    if (member.value.kind != Node::Kind::table) {
      if (!same(member.value, there)) keys.push_back(member.key);
      continue;
    }
    for (const Member& inner : member.value.members) {
      if (!same(inner.value, *there.find(inner.key))) keys.push_back(member.key + "." + inner.key);
    }
  }
  return keys;
}

}  // namespace policy
