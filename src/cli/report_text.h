// What a run leaves to read: the report as JSON, and the block about what was refused.
#pragma once

#include <string>
#include <string_view>

#include "cli/attached.h"
#include "os/os.h"

namespace cli {

struct ReportFacts {
  std::string name;
  const plan::Plan* plan = nullptr;  // nullptr: cerco failed before there was one
  os::Instant started;
  os::Instant ended;
  Outcome outcome;
};

// The report of the contract, one line with its newline.
[[nodiscard]] std::string report_json(const ReportFacts& facts);

// What was refused, how often, and what would allow it; "" when nothing was.
[[nodiscard]] std::string refusal_block(const journal::Summary& summary);

// The value of "run" in a report that we wrote, "" where there is none.
[[nodiscard]] std::string run_in(std::string_view report);

}  // namespace cli
