// What earlier runs of a task did, as the detectors' baseline: $STATE/journal/tasks/SHA256.seen.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/base.h"

namespace journal {

// The file is append-only text, one fact a line, so that runs of one task may share it:
//   v 1              its first line
//   d HOST:PORT      a destination that was used
//   w WINDOWS COUNT  a run's windows with requests, and the requests in them
class TaskMemory {
 public:
  static constexpr std::size_t kMostDestinations = 4096;

  // `text` is the file's content; empty: no run of this task came before. Lines that are something
  // else are passed over.
  explicit TaskMemory(std::string_view text);

  [[nodiscard]] bool first_run() const { return first_run_; }
  [[nodiscard]] bool knows(const std::string& destination) const {
    return destinations_.contains(destination);
  }
  void learn_destination(const std::string& destination);
  void learn_windows(std::uint64_t windows, std::uint64_t requests);
  [[nodiscard]] std::uint64_t windows() const { return windows_; }
  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  // What is to be appended to the file since the last call.
  [[nodiscard]] std::string take_new_text() { return std::exchange(new_text_, {}); }

  // The file of `task` in journal/tasks/, made when it is missing, open for append and reading.
  [[nodiscard]] static base::Result<base::Fd> open_file(int journal_folder, std::string_view task);

 private:
  bool first_run_ = false;
  std::set<std::string> destinations_;
  std::uint64_t windows_ = 0;
  std::uint64_t requests_ = 0;
  std::string new_text_;
};

}  // namespace journal
