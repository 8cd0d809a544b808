// The detectors: what in a run's events deserves a person's eye, or an act.
//
// Pure: events go in with the time, findings come out. Each finding stands for one (detector,
// subject); a detector names at most kMostSubjects subjects, then says once that there are more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "journal/event.h"
#include "journal/task_memory.h"
#include "os/os.h"

namespace journal {

struct Finding {
  std::string detector;
  std::string severity;  // informational, low, medium, high, critical
  std::string action;    // note, alert, freeze, revoke, cut-network, kill
  std::string text;      // for people; may hold names that the code inside chose
  std::string credential;
};

class Detectors {
 public:
  static constexpr std::size_t kMostSubjects = 32;
  static constexpr std::int64_t kWindowSeconds = 10;
  // A spike is more requests in one window than the floor and than kSpikeTimes the mean of earlier
  // windows that had any. With fewer than kEnoughWindows of those there is no mean to trust, and
  // the floor is the high one.
  static constexpr std::uint64_t kSpikeFloor = 100;
  static constexpr std::uint64_t kSpikeFloorUnknown = 1000;
  static constexpr std::uint64_t kSpikeTimes = 10;
  static constexpr std::uint64_t kEnoughWindows = 3;

  // `actions` by detector; one that is not named has the contract's default.
  Detectors(const std::map<std::string, std::string>& actions, TaskMemory memory);

  [[nodiscard]] std::vector<Finding> look(const Event& event, const os::Instant& steady);
  // Actions by detector from now on; one that is not named keeps its own.
  void act_as(const std::map<std::string, std::string>& actions);
  // The run is over: its windows become part of the task's baseline.
  void finish();
  [[nodiscard]] TaskMemory& memory() { return memory_; }

  // The contract's detectors with their default actions.
  [[nodiscard]] static const std::map<std::string, std::string>& defaults();
  // Whether an action asks for an act beyond the alert event.
  [[nodiscard]] static bool acts(std::string_view action);

 private:
  using Findings = std::vector<Finding>;
  void blocked_range(const Event& event, Findings& findings);
  void new_destination(const Event& event, Findings& findings);
  void request_spike(const Event& event, const os::Instant& steady, Findings& findings);
  void placeholder(const Event& event, Findings& findings);
  void canary(const Members& members, Findings& findings);
  // Adds the finding unless its subject was named before or there are too many subjects.
  void name(Findings& findings, Finding finding, const std::string& subject);

  std::map<std::string, std::string> actions_;
  TaskMemory memory_;
  std::map<std::string, std::set<std::string>> named_;
  std::int64_t window_ = -1;  // number of the current window
  std::uint64_t in_window_ = 0;
  std::uint64_t windows_ = 0;   // of this run, finished and with requests
  std::uint64_t requests_ = 0;  // in those
};

}  // namespace journal
