// The engine's process, from its start to its end.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"

namespace isolate {

struct Engine {
  int pid = 0;
  base::Fd out;      // its standard output
  base::Fd err;      // its standard error
  base::Fd request;  // the connection that runs the script; its body is standard input
  base::Fd finish;   // a second one, for the question how it ended
};

// Starts the engine on a configuration. It gets the `isolate` filter, which lets it execute
// nothing: the one execveat(2) that begins it names a descriptor above every number that it can
// have later.
[[nodiscard]] base::Result<Engine> start_engine(std::string_view config);

}  // namespace isolate
