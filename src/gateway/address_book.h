// How an allowed name enters the sandbox's address book, and when there are too many.
#pragma once

#include <optional>
#include <string>

#include "gateway/core.h"

namespace gateway {

// The place of a name that the policy allows, given out at its first use, whether it was looked up
// or told to the explicit proxy. nullopt when this sandbox has used more names, or more names of
// wildcard rules, than any ordinary task does (N89): each could carry data to whoever serves the
// zone. That is told by one alert.
[[nodiscard]] std::optional<Names::Given> give_place(Core& core, const std::string& name);

}  // namespace gateway
