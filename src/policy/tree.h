// The tree that TOML and JSON are read into: each key and value knows where it stands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace policy {

// Policies are small; what is larger or deeper is refused before it is read.
inline constexpr std::size_t kMaxText = std::size_t{1024} * 1024;
inline constexpr int kMaxDepth = 64;

// A line and a column (from 1, in characters) of the file, or the flag that gave the value.
struct Place {
  int line = 1;
  int column = 1;
  std::string flag;
};

struct Member;
struct Node {
  enum class Kind { null, boolean, integer, real, string, array, table, other };
  Kind kind = Kind::table;
  bool boolean = false;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Node> items;
  std::vector<Member> members;  // in the order of the file
  Place place;
  std::string raw;  // as it was written behind --set; read where a string is wanted
  // How TOML made it: what a [header] named or a value is cannot be named again; tables of dotted
  // keys grow within the section that made them.
  bool declared = false;
  bool frozen = false;
  int dotted_in = 0;

  [[nodiscard]] Node* find(std::string_view key);
  [[nodiscard]] const Node* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Place place;
  Node value;
};

// What a value is, for messages: "a string", "an integer" …
[[nodiscard]] std::string_view kind_name(Node::Kind kind);

// bad_input with FILE:LINE:COLUMN for anything that is not TOML 1.0, or JSON (RFC 8259), in UTF-8;
// duplicate keys included, and what is larger than kMaxText or deeper than kMaxDepth. The result is
// a table. Dates and times of TOML are read as Kind::other, since no key takes one.
[[nodiscard]] base::Result<Node> read_toml(std::string_view text, std::string_view file);
[[nodiscard]] base::Result<Node> read_json(std::string_view text, std::string_view file);

// `VALUE` of `--set KEY=VALUE`: TOML, and a string where that fails.
[[nodiscard]] Node read_value(std::string_view text, const Place& place);

// The tree that a policy's file would have, keys in the order of the contract (written.cc).
struct Policy;
[[nodiscard]] Node tree_of(const Policy& policy);

[[nodiscard]] std::string place_text(std::string_view file, const Place& place);

}  // namespace policy
