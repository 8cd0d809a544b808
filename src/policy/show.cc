// The effective policy as TOML with the origin of each value, and as JSON; both parse to the same.
#include <fmt/format.h>

#include <cmath>

#include "policy/policy.h"
#include "policy/tree.h"

namespace policy {
namespace {

// Three decimals say a number of processors exactly.
std::string fraction(double value) {
  std::string out = fmt::format("{:.3f}", value);
  while (out.ends_with('0')) out.pop_back();
  return out;
}

std::string json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::boolean:
      return node.boolean ? "true" : "false";
    case Node::Kind::integer:
      return std::to_string(node.integer);
    case Node::Kind::real:
      return fraction(node.real);
    case Node::Kind::string:
      return base::json_string(node.text);
    case Node::Kind::array: {
      std::vector<std::string> items;
      for (const Node& item : node.items) items.push_back(json(item));
      return base::json_array(items);
    }
    default:
      break;
  }
  base::JsonObject object;
  for (const Member& member : node.members) object.raw(member.key, json(member.value));
  return object.text();
}

// A basic string of TOML; everything outside of printable ASCII and UTF-8 letters is escaped.
std::string quoted(std::string_view value) {
  std::string out = "\"";
  for (char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// A key without quotes where TOML allows it.
std::string bare(const std::string& key) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const bool plain = !key.empty() && key.find_first_not_of(kPlain) == std::string::npos;
  return plain ? key : quoted(key);
}

std::string toml(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::array:
      for (const Node& item : node.items) out += (out.empty() ? "" : ", ") + toml(item);
      return "[" + out + "]";
    case Node::Kind::table:
      for (const Member& member : node.members) {
        out +=
            fmt::format("{}{} = {}", out.empty() ? "" : ", ", bare(member.key), toml(member.value));
      }
      return out.empty() ? "{}" : "{ " + out + " }";
    case Node::Kind::string:
      return quoted(node.text);
    default:
      return json(node);
  }
}

class Writer {
 public:
  explicit Writer(const std::map<std::string, std::string>& origins) : origins_(origins) {}

  std::string write(const Node& root) {
    for (const Member& member : root.members) {
      if (member.value.kind == Node::Kind::table) {
        section(member);
      } else if (member.value.kind == Node::Kind::array) {
        for (std::size_t i = 0; i < member.value.items.size(); ++i) {
          out_ += fmt::format("\n[[{}]]\n", member.key);
          lines(member.value.items[i], fmt::format("{}[{}]", member.key, i));
        }
      } else {
        line(member.key, member.value, member.key);
      }
    }
    return std::move(out_);
  }

 private:
  void section(const Member& member) {
    out_ += fmt::format("\n[{}]\n", member.key);
    lines(member.value, member.key);
  }

  // Variables each have an origin of their own, so they stand as dotted keys.
  void lines(const Node& table, const std::string& path) {
    for (const Member& member : table.members) {
      const std::string below = path + "." + member.key;
      if (below != "environment.set" || member.value.members.empty()) {
        line(bare(member.key), member.value, below);
        continue;
      }
      for (const Member& variable : member.value.members) {
        line(member.key + "." + bare(variable.key), variable.value, below + "." + variable.key);
      }
    }
  }

  void line(const std::string& key, const Node& value, const std::string& path) {
    const auto origin = origins_.find(path);
    out_ += fmt::format("{} = {}", key, toml(value));
    out_ += fmt::format("  # {}\n",
                        base::printable(origin == origins_.end() ? "default" : origin->second));
  }

  const std::map<std::string, std::string>& origins_;
  std::string out_;
};

}  // namespace

std::string show(const Effective& effective) {
  return Writer(effective.origins).write(tree_of(effective.policy));
}

std::string to_json(const Policy& policy) {
  return json(tree_of(policy));
}

}  // namespace policy
