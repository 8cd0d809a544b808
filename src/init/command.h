// Inside init only: from a frame to a running command.
#pragma once

#include <sys/types.h>

#include <array>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/base.h"
#include "base/frame.h"

namespace init {

// Why a command did not start: the step, and an errno.
struct NotStarted {
  std::string step;
  int error = 0;
};

// A forked child on its way to execve.
struct Begun {
  pid_t pid = 0;
  base::Fd report;  // end of file: execve went well; else see read_report
};

// What becomes the command's 0, 1 and 2. A terminal also becomes the one that controls its session.
struct Streams {
  std::array<int, 3> numbers;
  bool terminal = false;
};

// Forks a child that becomes the command: in its `groups` first, leader of a session of its own,
// with these streams and the `passed` as 3, 4, …, nothing else open, no capability, no new
// privileges, its filter last.
[[nodiscard]] std::expected<Begun, NotStarted> begin(const frame::Exec& exec,
                                                     const Streams& streams,
                                                     std::span<const base::Fd> groups,
                                                     std::span<const base::Fd> passed);

// What the child said before it ended; nullopt when execve went well, or it was killed on the way.
// Blocks until there is something to read.
[[nodiscard]] std::optional<NotStarted> read_report(int report);

// The files to try for `name`, in order: itself where it has a slash, else below each folder of
// PATH in `env`.
[[nodiscard]] std::vector<std::string> candidates(const std::string& name,
                                                  std::span<const std::string> env);

}  // namespace init
