// A run that a command of ours makes for itself: its streams and its report come back as text.
#pragma once

#include <cstddef>
#include <string>

#include "cli/cli.h"

namespace cli {

struct Caught {
  int status = 0;      // of the run
  std::string out;     // what it wrote to standard output
  std::string errors;  // and to standard error
  std::string run;     // its id, "" where it has no report
};

// `cerco run` with these flags and this command, in `world` but for its streams: standard input is
// empty, and nothing of the rest stays in a file. `most`: bytes that each of its outputs may have.
[[nodiscard]] base::Result<Caught> caught_run(World world, Parsed command, std::size_t most);

}  // namespace cli
