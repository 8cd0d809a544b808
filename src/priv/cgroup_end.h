// Freezing, killing and removing of one group folder; within module priv.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"

namespace priv {

// What the folders of single commands are called below a sandbox's group; a number follows.
inline constexpr std::string_view kCommandPrefix = "command-";

[[nodiscard]] base::Status write_group_file(int folder, const std::string& file,
                                            std::string_view text);
// v2: cgroup.freeze; v1: freezer.state. Waits until every process stands still.
[[nodiscard]] base::Status freeze_group(int folder, bool v2);
[[nodiscard]] base::Status thaw_group(int folder, bool v2);
// v2: cgroup.kill; v1: SIGKILL to each process listed, those of single commands with them, frozen
// where the group is a freezer's, again until a round finds none.
[[nodiscard]] base::Status kill_group(int folder, bool v2);
// Waits, at most some seconds, until no process is left in the group; then removes it.
[[nodiscard]] base::Status remove_group(int folder, const std::string& path);

}  // namespace priv
