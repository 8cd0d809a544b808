// Where a command's file lies: on the host, and whether a plan brings it inside.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "cli/cli.h"

namespace cli {

// PATH of the caller, "" when it is not set.
[[nodiscard]] std::string path_of(const World& world);
// The file that `name` starts by this PATH, or `name` itself when it has a slash; "" when there is
// none.
[[nodiscard]] std::string find_executable(const std::string& name, std::string_view path);

// Why the plan's command cannot start inside, seen from the host before anything is started;
// nullopt when it can, or when only the sandbox itself can tell (a file on its own disk).
struct CannotStart {
  int status = 127;  // 126: it is there and may not be executed
  base::Error error;
};
[[nodiscard]] std::optional<CannotStart> check_command(const World& world, const plan::Plan& plan);

// What brings in each argument of the plan's command that names a file or folder of the host and
// nothing that the plan or `brought` (names in the working folder) has inside: a line each, for a
// command that failed.
[[nodiscard]] std::vector<std::string> hints_of_arguments(const plan::Plan& plan,
                                                          const std::vector<std::string>& brought);

// The host's path of a path inside, by the plan's binds and links; nullopt where it is not of the
// host.
[[nodiscard]] std::optional<std::string> host_path(const plan::Plan& plan, std::string path);

}  // namespace cli
