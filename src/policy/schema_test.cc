// The published schema against the parser: every key, every good value, no other key.
#include "policy/schema.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "policy/testing.h"
#include "policy/tree.h"

namespace policy {
namespace {

using testing::policy_with;
using testing::read;

bool fits(const Node& schema, const Node& value);

bool same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.text == b.text && a.integer == b.integer && a.boolean == b.boolean;
}

double number_of(const Node& node) {
  return node.kind == Node::Kind::integer ? static_cast<double>(node.integer) : node.real;
}

bool fits_type(std::string_view type, const Node& value) {
  using enum Node::Kind;
  if (type == "object") return value.kind == table;
  if (type == "array") return value.kind == array;
  if (type == "string") return value.kind == string;
  if (type == "boolean") return value.kind == boolean;
  if (type == "integer") return value.kind == integer;
  return type == "number" && (value.kind == integer || value.kind == real);
}

bool fits_table(const Node& schema, const Node& value) {
  const Node* properties = schema.find("properties");
  const Node* others = schema.find("additionalProperties");
  for (const Member& member : value.members) {
    const Node* known = properties == nullptr ? nullptr : properties->find(member.key);
    if (known == nullptr) known = others;
    if (known != nullptr && !fits(*known, member.value)) return false;
  }
  const Node* required = schema.find("required");
  return required == nullptr || std::ranges::all_of(required->items, [&](const Node& key) {
           return value.find(key.text) != nullptr;
         });
}

bool fits_list(const Node& schema, const Node& value) {
  const Node* least = schema.find("minItems");
  if (least != nullptr && value.items.size() < static_cast<std::size_t>(least->integer))
    return false;
  const Node* items = schema.find("items");
  return items == nullptr ||
         std::ranges::all_of(value.items, [&](const Node& item) { return fits(*items, item); });
}

// The part of JSON Schema that the schema is written in.
bool fits(const Node& schema, const Node& value) {
  if (schema.kind == Node::Kind::boolean) return schema.boolean;
  if (const Node* type = schema.find("type"); type && !fits_type(type->text, value)) return false;
  if (const Node* one = schema.find("const"); one && !same(*one, value)) return false;
  const auto fits_it = [&](const Node& other) { return fits(other, value); };
  if (const Node* any = schema.find("anyOf"); any && std::ranges::none_of(any->items, fits_it))
    return false;
  if (const Node* one = schema.find("oneOf");
      one && std::ranges::count_if(one->items, fits_it) != 1)
    return false;
  if (const Node* words = schema.find("enum")) {
    if (std::ranges::none_of(words->items, [&](const Node& word) { return same(word, value); }))
      return false;
  }
  if (const Node* pattern = schema.find("pattern")) {
    if (!std::regex_search(value.text, std::regex(pattern->text))) return false;
  }
  if (const Node* least = schema.find("minimum"); least && number_of(value) < number_of(*least))
    return false;
  if (const Node* most = schema.find("maximum"); most && number_of(value) > number_of(*most))
    return false;
  if (value.kind == Node::Kind::table) return fits_table(schema, value);
  return value.kind != Node::Kind::array || fits_list(schema, value);
}

Node the_schema() {
  auto tree = read_json(schema(), "schema");
  EXPECT_TRUE(tree) << tree.error().line();
  return tree ? *tree : Node{};
}

// "limits.memory" and, of lists of tables, "egress.host": keys of two parts.
std::set<std::string> keys_of(const Node& schema) {
  std::set<std::string> keys;
  for (const Member& section : schema.find("properties")->members) {
    const Node* items = section.value.find("items");
    const Node* properties = (items != nullptr ? *items : section.value).find("properties");
    if (properties == nullptr) {
      keys.insert(section.key);
      continue;
    }
    for (const Member& member : properties->members) keys.insert(section.key + "." + member.key);
  }
  return keys;
}

TEST(Schema, HasTheKeysOfTheParserAndNoOthers) {
  std::set<std::string> listed;
  for (const auto& row : cases::rows("policy_keys.txt")) listed.insert(row[0]);
  EXPECT_EQ(keys_of(the_schema()), listed);
}

TEST(Schema, TakesWhatTheParserTakes) {
  const Node schema = the_schema();
  int good = 0;
  int refused = 0;
  int bad = 0;
  for (const auto& row : cases::rows("policy_keys.txt")) {
    const auto with = [&](const std::string& value) {
      return read_toml(policy_with(row[0], value), "policy");
    };
    if (!row[1].empty()) {
      const auto tree = with(row[1]);
      ASSERT_TRUE(tree) << row[0];
      EXPECT_TRUE(fits(schema, *tree)) << row[0] << " = " << row[1];
      ++good;
    }
    // What it refuses the parser refuses as well; names and addresses are the parser's alone.
    const auto tree = with(row[2]);
    if (!tree) continue;
    ++bad;
    refused += fits(schema, *tree) ? 0 : 1;
  }
  EXPECT_GT(good, 90);
  EXPECT_GE(refused, 75) << refused << " of " << bad;
}

TEST(Schema, TakesWholePoliciesAndNoUnknownKey) {
  const Node schema = the_schema();
  const auto effective = read(cases::read("decide.toml"));
  ASSERT_TRUE(effective);
  const auto shown = read_json(to_json(effective->policy), "shown");
  ASSERT_TRUE(shown) << shown.error().line();
  EXPECT_TRUE(fits(schema, *shown));
  for (const char* text :
       {"limit = 1\n", "[limits]\nmem = \"1GiB\"\n", "[[egress]]\nhost = \"a.test\"\nport = 1\n",
        "[[egress]]\n", "[[egress]]\nhost = \"a.test\"\ntcp = \"a.test:1\"\n",
        "[[credential]]\nname = \"x\"\n", "version = 2\n"}) {
    const auto tree = read_toml(text, "policy");
    ASSERT_TRUE(tree);
    EXPECT_FALSE(fits(schema, *tree)) << text;
    EXPECT_FALSE(read(text)) << text;
  }
}

TEST(Schema, AKeyThatStandsElsewhereIsNamed) {
  const auto says = [](OverrideKind kind, const std::string& text) {
    const Override change[] = {{kind, text}};
    return testing::line_of(read("", change));
  };
  EXPECT_TRUE(says(OverrideKind::set, "memory=1GiB").contains("(did you mean limits.memory)"))
      << says(OverrideKind::set, "memory=1GiB");
  EXPECT_TRUE(
      says(OverrideKind::set, "limits.resolvers=1").contains("did you mean network.resolvers"));
  EXPECT_TRUE(says(OverrideKind::set, "limits.memroy=1").contains("(did you mean memory)"));
}

}  // namespace
}  // namespace policy
