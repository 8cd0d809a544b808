// Refusals that repeat: the first of each kind are told one by one, the rest is added up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "journal/event.h"
#include "os/os.h"

namespace journal {

// Two refusals are of one kind when everything but method, path, url and fix is the same.
class Folds {
 public:
  static constexpr std::uint64_t kTold = 32;          // one by one
  static constexpr std::int64_t kRefillSeconds = 10;  // one more is told after so long
  static constexpr std::size_t kMostKinds = 1024;     // what goes beyond is of one kind: the others
  static constexpr std::size_t kMostKindBytes = 4096;

  // Whether this is an event to fold and has had its share; then it is added up.
  [[nodiscard]] bool fold(const Event& event, const os::Instant& steady);
  [[nodiscard]] bool holds() const { return folded_ > 0; }

  // One event that stands for all of a kind that were added up; counting starts anew.
  struct Folded {
    std::string type;
    std::string members;  // with `count`
  };
  [[nodiscard]] std::vector<Folded> take();

 private:
  struct Kind {
    std::string type;
    std::string members;
    std::uint64_t told = 0;
    std::int64_t refilled = 0;  // second
    std::uint64_t folded = 0;
  };
  Kind& kind_of(const Event& event, std::int64_t second);
  void forget_quiet_ones(std::int64_t second);

  std::map<std::string, Kind> kinds_;
  std::uint64_t folded_ = 0;
  std::int64_t forgot_ = 0;  // second
};

}  // namespace journal
