// Control groups of single commands: below those of a sandbox, one set a command of a session.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/cgroup.h"

namespace priv {

// Where the processes of one command stand, so that they can be told apart and ended together. No
// process inside can leave them: what is mounted of cgroups there is read-only, and the descriptors
// of entries() close before the command's first instruction. The folders go at the owner's end when
// they are empty by then, else with those of the sandbox.
class CommandGroups {
 public:
  CommandGroups() = default;
  CommandGroups(CommandGroups&&) noexcept = default;
  CommandGroups& operator=(CommandGroups&&) = delete;
  CommandGroups(const CommandGroups&) = delete;
  CommandGroups& operator=(const CommandGroups&) = delete;
  ~CommandGroups() { (void)remove_empty(); }

  // A process of one thread enters by writing "0" into each. They were opened with our rights, and
  // the kernel judges by who opened them (cgroup_procs_write, since CVE-2021-4197).
  [[nodiscard]] std::vector<int> entries() const;
  // SIGKILL to every process of the command, however it has forked.
  [[nodiscard]] base::Status kill() const;
  // Removes the folders if no process is left; whether they are gone. Holds no descriptor from then
  // on, so that nothing else can be asked afterwards.
  [[nodiscard]] bool remove_empty();
  // How many of its processes the kernel killed for want of memory; 0 without a memory group.
  [[nodiscard]] std::uint64_t oom_kills() const;
  [[nodiscard]] std::uint64_t memory_peak() const;  // bytes; 0 where the kernel does not say

 private:
  struct Group {
    Hierarchy kind = Hierarchy::v2;
    bool memory = false;
    std::string path;
    base::Fd folder;
    base::Fd entry;
  };
  friend base::Result<CommandGroups> make_command_groups(Badge, const Groups&, std::uint64_t);
  static base::Result<Group> make(const std::string& path, Hierarchy kind, bool memory);
  [[nodiscard]] std::uint64_t memory_value(const char* v1, const char* v2,
                                           std::string_view key) const;

  std::vector<Group> groups_;
};

// Lets memory be counted a command: on v2 a group that hands a controller down may hold no process
// itself, so that what is in it moves into a folder `init` below. Nothing to do on v1. Called once,
// while only cerco-init runs. Safe: only processes of the sandbox's own group are moved.
[[nodiscard]] base::Status prepare_command_groups(Badge badge, const Groups& groups);

// Folders `command-NUMBER` below the group that the sandbox is killed by and, where memory is
// limited, below its memory group. `missing` where there is no group to kill by. Safe: only new
// folders below the sandbox's own groups are made.
[[nodiscard]] base::Result<CommandGroups> make_command_groups(Badge badge, const Groups& groups,
                                                              std::uint64_t number);

}  // namespace priv
