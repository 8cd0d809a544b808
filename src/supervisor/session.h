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
#include "supervisor/parts.h"

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
  bool attached_terminal = false;               // it was handed the way to the terminal of that one
  std::uint64_t revocation = 0;                 // that it asked for; 0: none
  std::uint64_t publication = 0;                // that it asked for
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

// A port of the sandbox that the host's loopback reaches, and the process that carries it.
struct Published {
  std::uint64_t id = 0;
  std::uint16_t port = 0;
  Part part;
  std::uint64_t connections = 0;  // that are open
  bool served = false;            // whoever asked for it was told so
  bool gone = false;
};

// One command besides the first.
struct Command {
  std::uint64_t id = 0;
  std::string argv0;
  std::string path;  // its PATH
  std::unique_ptr<sandbox::CommandProcesses> processes;
  Facts facts;
  sandbox::Counters before;  // of the whole sandbox, when it started
  Clock::time_point started;
  std::optional<Clock::time_point> deadline;
  std::optional<Clock::time_point> kill_at;  // the grace after its time-out ends here
  std::optional<Clock::time_point> gone_by;  // it was killed, and is given up then
  bool began = false;
  bool over = false;
};

}  // namespace supervisor
