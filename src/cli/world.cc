// What is read of the process's surroundings, once, at its start.
#include "cli/cli.h"
#include "os/caller.h"
#include "os/signals.h"

namespace cli {
namespace {

std::map<std::string, std::string> environment_map(char** environment) {
  std::map<std::string, std::string> all;
  for (char** at = environment; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry(*at);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    all.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return all;
}

std::string value_of(const World& world, const std::string& name) {
  const auto at = world.env.find(name);
  return at == world.env.end() ? std::string() : at->second;
}

// Contract, "State".
base::Result<std::string> state_dir(const World& world) {
  std::string dir = value_of(world, "CERCO_STATE_DIR");
  if (dir.empty() && os::effective_uid() == 0) return std::string("/var/lib/cerco");
  if (dir.empty()) {
    const std::string state = value_of(world, "XDG_STATE_HOME");
    const std::string home = value_of(world, "HOME");
    if (!state.empty()) dir = state + "/cerco";
    if (dir.empty() && !home.empty()) dir = home + "/.local/state/cerco";
    if (dir.empty()) {
      return base::bad_input("state", "neither HOME nor XDG_STATE_HOME is set",
                             "set CERCO_STATE_DIR");
    }
  }
  if (!dir.starts_with('/')) {
    return base::bad_input("CERCO_STATE_DIR", "`" + base::printable(dir) + "` is not absolute",
                           "expected an absolute path");
  }
  while (dir.size() > 1 && dir.ends_with('/')) dir.pop_back();
  return dir;
}

}  // namespace

base::Result<World> read_world(int argc, char** argv, char** environment) {
  TRY(os::fill_standard_streams());
  os::ignore_sigpipe();
  World world;
  for (int i = 1; i < argc; ++i) world.args.emplace_back(argv[i]);
  world.env = environment_map(environment);
  for (int fd = 0; fd <= 2; ++fd) {
    world.terminal[static_cast<std::size_t>(fd)] = os::is_terminal(fd);
  }
  world.colour = world.terminal[1] && value_of(world, "NO_COLOR").empty();
  world.helper_dir = TRY(os::own_folder());
  world.state_dir = TRY(state_dir(world));
  return world;
}

}  // namespace cli
