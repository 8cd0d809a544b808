// What a run was refused, counted for the report: bounded, whatever the code inside does.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "journal/event.h"
#include "journal/journal.h"

namespace journal {

class Refusals {
 public:
  static constexpr std::size_t kMost = 256;  // distinct ones
  // Of all their texts: the Summary is one message.
  static constexpr std::size_t kMostBytes = std::size_t{96} * 1024;
  static constexpr std::size_t kMostText = 512;  // of one text; longer ones are cut

  // Takes refused decisions and denied names; passes over everything else.
  void look(const Event& event);
  // In the order of their first occurrence; what did not fit is counted in one of kind "more".
  [[nodiscard]] std::vector<Refusal> all() const;

 private:
  std::map<std::string, std::size_t> places_;  // what it is → index
  std::vector<Refusal> refusals_;
  std::size_t bytes_ = 0;
  std::uint64_t more_ = 0;
};

}  // namespace journal
