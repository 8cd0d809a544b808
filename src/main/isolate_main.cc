// cerco-isolate, the one command of a sandbox of the isolate tier.
//
// SECURITY. It stands inside with the script, as the workload's user, and holds nothing but the
// script's own streams. It parses what the engine writes (isolate/lines.cc), byte by byte, keeping
// nothing. The engine gets its filter before its first instruction (isolate/engine.cc,
// become_engine), this process the same one before it reads a byte of the engine (isolate/run.cc,
// give_up_rights).
#include <csignal>

#include "isolate/isolate.h"

extern char** environ;

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<std::pair<std::string, std::string>> env;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos)
      env.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return isolate::run(std::vector<std::string>(argv, argv + argc), std::move(env));
}
