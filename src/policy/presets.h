// What `preset = "NAME"` of an [[egress]] stands for.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "policy/policy.h"

namespace policy {

// The [[egress]] tables of one preset. `from` says who wrote them: a preset's own file, which
// messages name with line and column, or the configuration of a tool that they were read from,
// which may give variables of [environment] set as well.
struct PresetRules {
  std::string text;  // TOML
  std::string from;
  enum class Kind { file, tool } kind = Kind::file;
};
// The rules of a preset; not_found for a name that there is none for.
using PresetSource = std::function<base::Result<PresetRules>(std::string_view name)>;

struct Node;
// Replaces the presets in the tree of a policy.
[[nodiscard]] base::Status expand_presets(Node& root, std::string_view file,
                                          const PresetSource& presets);

// parse() of policy.h, with every `preset` replaced by its rules. They are named after it ("pip",
// "pip-2" …), or after the `name` beside `preset`. `addresses` may stand there as
// well and holds for each of them: mirrors often have private addresses. Variables
// of a tool are set where the policy sets none of that name.
[[nodiscard]] base::Result<Effective> parse(std::string_view text, std::string_view file,
                                            std::span<const Override> overrides,
                                            const HostSize& host, const PresetSource& presets);

// A policy file for a sandbox that runs under `running`. What can change there (rules, denials,
// bindings, alerts, network.default and network.mode) is what the file says of it, and the defaults
// where it says nothing; everything else stays as it runs unless the file says otherwise, which
// plan::change() then refuses. Errors as of parse().
[[nodiscard]] base::Result<Effective> parse_change(std::string_view text, std::string_view file,
                                                   const Policy& running,
                                                   const PresetSource& presets);

}  // namespace policy
