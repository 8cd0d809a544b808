// What a living run keeps of those who ask something of it, and of the commands that they asked
// for.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "ipc/ipc.h"
#include "sandbox/sandbox.h"
#include "supervisor/ending.h"
#include "supervisor/output_ring.h"

namespace supervisor {

using Clock = std::chrono::steady_clock;

// `ms` after `start`; what lies further ahead than a century is a century ahead, which no number of
// a policy overflows.
[[nodiscard]] constexpr Clock::time_point after(Clock::time_point start, std::uint64_t ms) {
  constexpr std::uint64_t kCentury = 100ULL * 366 * 24 * 60 * 60 * 1000;
  return start + std::chrono::milliseconds(ms < kCentury ? ms : kCentury);
}

// One connection. Nothing of it is waited for: what does not fit into its socket waits here.
struct Client {
  ipc::Channel channel;
  std::uint64_t command = 0;                    // that it asked for
  std::optional<OutputRing::Position> reading;  // of the detached command's output
  std::uint64_t revocation = 0;                 // that it asked for; 0: none
  std::optional<PolicyChanged> change;          // due once everybody holds to it
  bool awaits_end = false;                      // Done is due when the run is gone
  bool last_said = false;                       // closes once its outbox is empty
  bool gone = false;
  std::deque<std::string> outbox;

  void say(const ToClient& message) { outbox.push_back(base::encode(message)); }
  void say_last(const ToClient& message) {
    say(message);
    last_said = true;
  }
  // Sends what fits; `ring` may be nullptr.
  void pump(const OutputRing* ring);
  [[nodiscard]] bool has_more(const OutputRing* ring) const;
};

// One command besides the first.
struct Command {
  std::uint64_t id = 0;
  std::string argv0;
  std::unique_ptr<sandbox::CommandProcesses> processes;
  Facts facts;
  sandbox::Counters before;  // of the whole sandbox, when it started
  Clock::time_point started;
  std::optional<Clock::time_point> deadline;
  std::optional<Clock::time_point> kill_at;  // the grace after its time-out ends here
  bool over = false;
};

}  // namespace supervisor
