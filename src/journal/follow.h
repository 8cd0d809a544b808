// Following journals that grow: `cerco log -f`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/base.h"
#include "journal/journal.h"
#include "journal/line.h"

namespace journal {

// Whether a line passes a filter (its `run` aside).
[[nodiscard]] bool matches(const Filter& filter, std::string_view line);

class Follower {
 public:
  // Follows one run, or with "" every run, also such as are yet to start.
  Follower(std::string journal_dir, std::string run);
  // Readable when take() is worth calling.
  [[nodiscard]] base::Status watch();
  // Calls `line` with every whole line that has not been taken; run by run, each in its order.
  [[nodiscard]] base::Status take(const std::function<void(std::string_view)>& line);
  // Waits until something in the folder changes, or for that long.
  [[nodiscard]] base::Status wait(int milliseconds);

 private:
  std::string folder_;
  std::string run_;
  base::Fd watch_;
  std::map<std::string, Lines> files_;  // by name
};

}  // namespace journal
