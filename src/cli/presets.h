// Presets as the command line knows them: files of rules, and the indexes of the host's tools.
#pragma once

#include "cli/cli.h"
#include "host/indexes.h"
#include "policy/presets.h"

namespace cli {

// NAME.toml in ~/.config/cerco/presets, else in /etc/cerco/presets, else the tool of that name. A
// file that others than its owner (the caller or root) can write is an error.
[[nodiscard]] policy::PresetSource preset_source(const World& world);

// The rules of a tool's indexes as TOML: reads alone, below each index's path. bad_input for an
// index that no rule can name.
[[nodiscard]] base::Result<std::string> rules_for(std::string_view tool,
                                                  const host::Indexes& indexes);

}  // namespace cli
