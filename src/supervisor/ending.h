// Which one ending a run had, decided from what was seen; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/sandbox.h"
#include "supervisor/supervisor.h"

namespace supervisor {

// Why the supervisor ended the run itself, the first reason only.
enum class Cut {
  none,
  timed_out,
  idle,
  processor_time,
  out_of_memory,
  host_disk_full,
  output_limit,
  killed
};

struct Facts {
  Cut cut = Cut::none;
  std::string by;              // killed: who
  bool command_ended = false;  // the command's own end was seen
  bool signalled = false;
  std::uint32_t code = 0;  // exit status or signal number
  std::uint64_t cpu_ms = 0;
  sandbox::Counters counters;
  bool journal_full = false;
};

[[nodiscard]] Ending judge(const Facts& facts);
// cerco's exit status for an ending: the command's own, 128+n, 124, 137 (contract, Exit statuses).
[[nodiscard]] std::uint32_t status_of(const Ending& ending, std::uint32_t signal_number);
// The limits that were hit, by their policy key.
[[nodiscard]] std::vector<std::string> limits_hit(const Facts& facts);
// What is told of the command `argv0` that could not be started: 127 and 126 as shells do, else
// 125. `path` is its PATH.
[[nodiscard]] StartFailed not_started(const std::string& argv0, const std::string& step, int number,
                                      const std::string& path);
// Which limit or whom a command or run was ended by, for a person: "ended by limits.wall"; "" when
// it ended by itself.
[[nodiscard]] std::string why_ended(const Ending& ending, const std::vector<std::string>& limits);
// "ENOENT" for its number; "" for 0 and where the system has no name.
[[nodiscard]] std::string error_name(int number);
// "SIGKILL" for 9; "SIG42" where the system has no name.
[[nodiscard]] std::string signal_name(std::uint32_t number);

}  // namespace supervisor
