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
  sandbox::Counters counters;
  bool journal_full = false;
};

[[nodiscard]] Ending judge(const Facts& facts);
// cerco's exit status for an ending: the command's own, 128+n, 124, 137 (contract, Exit statuses).
[[nodiscard]] std::uint32_t status_of(const Ending& ending, std::uint32_t signal_number);
// The limits that were hit, by their policy key.
[[nodiscard]] std::vector<std::string> limits_hit(const Facts& facts);
// "SIGKILL" for 9; "SIG42" where the system has no name.
[[nodiscard]] std::string signal_name(std::uint32_t number);

}  // namespace supervisor
