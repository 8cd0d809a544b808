// The supervisor's own events, as drafts for the journal.
#pragma once

#include <string>
#include <vector>

#include "journal/journal.h"
#include "plan/plan.h"
#include "supervisor/ending.h"
#include "supervisor/supervisor.h"

namespace supervisor {

[[nodiscard]] journal::Draft run_planned(const plan::Plan& plan);
[[nodiscard]] journal::Draft policy_changed(const plan::Plan& plan,
                                            const std::vector<std::string>& retired);
[[nodiscard]] journal::Draft run_started(const plan::Plan& plan, std::uint32_t host_uid);
[[nodiscard]] journal::Draft command_started(std::uint64_t id, const std::vector<std::string>& argv,
                                             const std::string& cwd);
// Of the command that the run began with: the run's own ending says why.
[[nodiscard]] journal::Draft command_ended(std::uint64_t id, bool signalled, std::uint32_t code,
                                           std::uint64_t cpu_ms);
// Of any other.
[[nodiscard]] journal::Draft further_ended(std::uint64_t id, const Facts& facts,
                                           const Ending& ending);
[[nodiscard]] journal::Draft limit_hit(std::string_view limit);
[[nodiscard]] journal::Draft containment(const journal::Alarm& alarm);
[[nodiscard]] journal::Draft operator_action(std::string_view action);
[[nodiscard]] journal::Draft broke_protocol();
[[nodiscard]] journal::Draft part_lost(std::string_view who);
// What the sandbox's end could not remove.
[[nodiscard]] journal::Draft left_over(const base::Error& error);
[[nodiscard]] journal::Draft refusals_dropped(std::string_view of, std::uint64_t count);
[[nodiscard]] journal::Draft run_ended(const Ending& ending, std::uint32_t status,
                                       const Usage& usage,
                                       const std::vector<std::string>& limits_hit);

}  // namespace supervisor
