// The narrowest rules for what a run was refused, or was let do by audit alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace cli {

// Gathers decisions of one journal. What no rule may open (ranges, credentials, denials) leaves no
// trace here, and nothing is widened: paths of one host and method are listed, never generalised.
class Suggestion {
 public:
  static constexpr std::size_t kMostRules = 500;
  static constexpr std::size_t kMostPaths = 200;  // of one rule

  // Takes one line of the journal; passes over everything but decisions with a fix.
  void look(std::string_view json_line);
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  // [[egress]] tables as TOML, each with a comment of what it is from. Every name in it was chosen
  // by the code inside, and the heading says so.
  [[nodiscard]] std::string text() const;
  // The same as one JSON array.
  [[nodiscard]] std::string json() const;

 private:
  struct Rule {
    policy::Egress egress;
    std::uint64_t count = 0;
    bool more_paths = false;
  };
  [[nodiscard]] std::vector<const Rule*> compatible() const;

  // The rule of a fix, read again as any policy is; nullptr for what is not one rule.
  [[nodiscard]] const policy::Egress* read(const std::string& fix);

  std::map<std::string, std::optional<policy::Egress>> read_;  // by the fix's text, bounded
  std::map<std::string, Rule> rules_;                          // by host, port, scheme and methods
  std::uint64_t more_ = 0;
};

}  // namespace cli
