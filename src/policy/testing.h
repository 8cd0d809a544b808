// What this module's tests share: reading policies, and the text of one around a single key.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/cases.h"
#include "policy/policy.h"

namespace policy::testing {

inline base::Result<Effective> read(std::string_view text,
                                    std::span<const Override> overrides = {}) {
  return parse(text, "policy", overrides, {});
}

inline std::string line_of(const base::Result<Effective>& result) {
  return result ? "accepted" : result.error().line();
}

// The text around one key, so that a policy with it is complete.
inline std::string policy_with(const std::string& key, const std::string& value) {
  const auto dot = key.find('.');
  if (dot == std::string::npos) return key + " = " + value + "\n";
  const std::string table = key.substr(0, dot);
  const std::string name = key.substr(dot + 1);
  const std::string line = name + " = " + value + "\n";
  if (table == "egress") {
    const bool target = name == "host" || name == "tcp" || name == "cidr" || name == "preset";
    return "[[egress]]\n" + std::string(target ? "" : "host = \"a.example.com\"\n") +
           (name == "own" ? "methods = [\"GET\"]\n" : "") + line;
  }
  if (table == "deny")
    return "[[deny]]\n" +
           std::string(name == "host" || name == "cidr" ? "" : "host = \"a.example.com\"\n") + line;
  if (table != "credential") return "[" + table + "]\n" + line;
  std::string out =
      "[[egress]]\nhost = \"api.example.com\"\nmethods = [\"GET\", \"POST\"]\npaths = "
      "[\"/v1/**\"]\n[[credential]]\n" +
      line;
  const std::vector<std::pair<std::string, std::string>> needed = {
      {"source", "{ env = \"K\" }"},
      {"hosts", "[\"api.example.com\"]"},
      {"methods", "[\"GET\"]"},
      {"paths", "[\"/v1/**\"]"},
      {"inject", "{ header = \"A\" }"}};
  for (const auto& [other, text] : needed) {
    if (other != name) out += other + " = " + text + "\n";
  }
  return out;
}

inline bool starts_with_place(const std::string& line) {
  // policy:LINE:COLUMN:
  const auto parts = base::split(line, ':');
  return parts.size() > 3 && parts[0] == "policy" && base::parse_number(parts[1]) &&
         base::parse_number(parts[2]);
}

}  // namespace policy::testing
