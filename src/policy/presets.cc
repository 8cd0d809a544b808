// Presets are replaced in the tree, before anything is understood, so that their rules are checked
// like those that stand in the policy itself.
#include "policy/presets.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/reader.h"

namespace policy {
namespace {

Member* member_of(Node& table, std::string_view key) {
  const auto found = std::ranges::find(table.members, key, &Member::key);
  return found == table.members.end() ? nullptr : &*found;
}

Node text_node(std::string text, const Place& place) {
  Node node;
  node.kind = Node::Kind::string;
  node.text = std::move(text);
  node.place = place;
  return node;
}

// Says of every value below where it comes from.
void mark(Node& node, const PresetRules& rules, std::string_view preset) {
  const auto flag = [&](const Place& place) {
    return rules.kind == PresetRules::Kind::file
               ? fmt::format("{}:{}:{}", rules.from, place.line, place.column)
               : fmt::format("preset {}: {}", preset, rules.from);
  };
  node.place.flag = flag(node.place);
  for (Member& member : node.members) {
    member.place.flag = flag(member.place);
    mark(member.value, rules, preset);
  }
  for (Node& item : node.items) mark(item, rules, preset);
}

std::unexpected<base::Error> bad(const std::string& where, std::string what, std::string expected) {
  return base::bad_input(where, std::move(what), std::move(expected));
}

// Only rules; of a tool its variables as well.
base::Status check_tree(const Node& tree, const PresetRules& rules) {
  for (const Member& member : tree.members) {
    if (member.key == "egress") continue;
    if (member.key == "environment" && rules.kind == PresetRules::Kind::tool) continue;
    return bad(place_text(rules.from, member.place), base::printable(member.key.substr(0, 80)),
               "expected tables [[egress]] alone in a preset");
  }
  const Node* egress = tree.find("egress");
  if (egress == nullptr || egress->kind != Node::Kind::array || egress->items.empty()) {
    return bad(rules.from, "no [[egress]]", "expected at least one in a preset");
  }
  for (const Node& rule : egress->items) {
    if (rule.find("preset") == nullptr) continue;
    return bad(place_text(rules.from, rule.place), "a preset within a preset",
               "expected the rules themselves");
  }
  return {};
}

// The rules that stand for one [[egress]] with `preset`.
base::Result<std::vector<Node>> rules_of(const Node& rule, const std::string& preset,
                                         const PresetRules& rules, Node& tree) {
  const Node* named = rule.find("name");
  const std::string name = named == nullptr ? preset : named->text;
  std::vector<Node> out = std::move(tree.find("egress")->items);
  for (std::size_t i = 0; i < out.size(); ++i) {
    mark(out[i], rules, preset);
    const Node* addresses = rule.find("addresses");
    if (addresses != nullptr && member_of(out[i], "addresses") == nullptr)
      out[i].members.push_back({"addresses", addresses->place, *addresses});
    if (member_of(out[i], "name") != nullptr) continue;
    Node text = text_node(i == 0 ? name : fmt::format("{}-{}", name, i + 1), out[i].place);
    out[i].members.insert(out[i].members.begin(), Member{"name", out[i].place, std::move(text)});
  }
  return out;
}

// The tool's variables, where the policy says nothing of them.
void add_variables(Node& root, const Node& tree) {
  const Node* environment = tree.find("environment");
  const Node* wanted = environment == nullptr ? nullptr : environment->find("set");
  if (wanted == nullptr) return;
  const auto table = [](Node& in, std::string_view key, const Place& place) -> Node& {
    if (Member* there = member_of(in, key)) return there->value;
    Node node;
    node.place = place;
    in.members.push_back({std::string(key), place, std::move(node)});
    return in.members.back().value;
  };
  Node& own = table(root, "environment", wanted->place);
  if (own.kind != Node::Kind::table) return;
  Node& set = table(own, "set", wanted->place);
  const Node* pass = own.find("pass");  // found last: what is added moves the members
  if (set.kind != Node::Kind::table) return;
  for (const Member& variable : wanted->members) {
    const bool passed = pass != nullptr && std::ranges::any_of(pass->items, [&](const Node& item) {
                          return item.text == variable.key;
                        });
    if (!passed && member_of(set, variable.key) == nullptr) set.members.push_back(variable);
  }
}

// The preset's name, where the table has one and nothing beside it that would be lost.
base::Result<std::string> preset_name(const Node& rule, std::string_view file) {
  const Node* preset = rule.find("preset");
  if (preset->kind != Node::Kind::string || !check_label(preset->text).none()) {
    return bad(place_text(file, preset->place), "egress.preset: " + found(*preset),
               "expected the name of a tool such as \"pip\"");
  }
  for (const Member& member : rule.members) {
    if (member.key == "preset" || member.key == "name" || member.key == "addresses") continue;
    return bad(place_text(file, member.place),
               fmt::format("{} beside preset", base::printable(member.key.substr(0, 80))),
               "expected name and addresses alone: the preset says the rest");
  }
  return preset->text;
}

}  // namespace

base::Status expand_presets(Node& root, std::string_view file, const PresetSource& presets) {
  Node* egress = root.find("egress");
  if (egress == nullptr || egress->kind != Node::Kind::array) return {};
  std::vector<Node> all;
  std::vector<Node> trees;  // whose variables are added last: that moves what `egress` points to
  for (Node& rule : egress->items) {
    if (rule.kind != Node::Kind::table || rule.find("preset") == nullptr) {
      all.push_back(std::move(rule));
      continue;
    }
    const std::string name = TRY(preset_name(rule, file));
    auto rules = presets(name);
    if (!rules) {
      base::Error error = rules.error();
      error.where = place_text(file, rule.find("preset")->place) + ": " + error.where;
      return std::unexpected(std::move(error));
    }
    Node tree = TRY(read_toml(rules->text, rules->from));
    TRY(check_tree(tree, *rules));
    std::ranges::move(TRY(rules_of(rule, name, *rules, tree)), std::back_inserter(all));
    if (Node* variables = tree.find("environment")) mark(*variables, *rules, name);
    trees.push_back(std::move(tree));
  }
  egress->items = std::move(all);
  for (const Node& tree : trees) add_variables(root, tree);
  return {};
}

}  // namespace policy
