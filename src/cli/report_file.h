// Where the report goes: `--report FILE|fd:N`, and the state directory.
#pragma once

#include <optional>
#include <string>

#include "base/base.h"
#include "cli/cli.h"

namespace cli {

// Opened before anything is started, so that a wrong path is an error of its own.
class ReportFile {
 public:
  // `target` is the value of `--report`; nullopt: there is none. bad_input for a file that cannot
  // be written and for one in `state_dir`, whose content stays.
  [[nodiscard]] static base::Result<ReportFile> open(const std::optional<std::string>& target,
                                                     const std::string& state_dir);
  // Replaces what the file held.
  [[nodiscard]] base::Status write(std::string_view json) const;
  [[nodiscard]] int fd() const { return fd_.get(); }  // -1: there is none

 private:
  base::Fd fd_;
};

// Keeps the report below runs/RUN, for `cerco report` and for finding the run by its name.
[[nodiscard]] base::Status keep_report(const std::string& state_dir, const std::string& run,
                                       std::string_view json);

}  // namespace cli
