// The report of a run or of one command of it, as the contract's JSON; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "os/os.h"
#include "supervisor/session_frames.h"

namespace supervisor {

struct RunReport {
  std::string version;  // of cerco
  std::string run;
  std::string name;
  std::string task;
  std::string tier;
  std::vector<std::string> below_advice;
  std::vector<std::string> unheld;
  std::string policy_sha256;
  os::Instant started;
  os::Instant ended;
  std::uint32_t status = 125;
  Ending ending;
  Usage usage;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint64_t changes = 0;
  std::vector<std::string> limits_hit;
  journal::Summary summary;
};

// One line with its newline.
[[nodiscard]] std::string report_json(const RunReport& report);
// What is known of a run from its start; times, ending and usage are the caller's to set.
[[nodiscard]] RunReport report_of(const LiveRun& run, std::string_view version);
// What can still be said of a run whose supervisor was killed, by its journal.
[[nodiscard]] RunReport lost_report(const LiveRun& run, std::string_view version,
                                    journal::Past past);
// RFC 3339, UTC, milliseconds: "2026-01-02T03:04:05.123Z".
[[nodiscard]] std::string time_text(os::Instant instant);

}  // namespace supervisor
