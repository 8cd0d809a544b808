// Control groups: one folder a hierarchy and sandbox, on v1, v2 and hosts that have both.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"
#include "priv/badge.h"

namespace priv {

enum class Hierarchy { v1, v2 };

// A group to be made: `parent`/`name` in one hierarchy, with limits (file → text) in order.
struct GroupSpec {
  Hierarchy kind = Hierarchy::v2;
  std::string controller;  // "memory", "pids", … or "unified"
  std::string parent;
  std::vector<std::pair<std::string, std::string>> limits;
};

class CommandGroups;

// The groups of one sandbox. At its end every process in them is killed and the folders go.
class Groups {
 public:
  Groups() = default;
  Groups(Groups&&) noexcept = default;
  Groups& operator=(Groups&& other) noexcept;
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  ~Groups();

  // Folder of the v2 group for CLONE_INTO_CGROUP, or -1.
  [[nodiscard]] int v2() const { return v2_; }
  // Puts the calling process into the v1 groups: "0" into their `tasks`, which is 20 times cheaper
  // than `cgroup.procs` since no lock over all threads of the host is taken. The process must have
  // one thread. [between clone and exec]
  [[nodiscard]] base::Status enter_v1() const;

  // Text of a file of the group that holds `controller`; not_found when there is none.
  [[nodiscard]] base::Result<std::string> read(const std::string& controller,
                                               const std::string& file) const;
  // The value of `key` in a file of "key value" lines; 0 where it is not there.
  [[nodiscard]] std::uint64_t value(const std::string& controller, const std::string& file,
                                    std::string_view key) const;
  [[nodiscard]] bool has(const std::string& controller, Hierarchy kind) const;
  // Readable when the memory limit was met: an eventfd (v1) or inotify on memory.events (v2); not
  // open without a memory group. What is read from it must be thrown away and memory.events asked.
  [[nodiscard]] base::Result<base::Fd> watch_memory() const;

  [[nodiscard]] base::Status freeze() const;
  [[nodiscard]] base::Status thaw() const;
  // SIGKILL to every process in the groups, at once.
  [[nodiscard]] base::Status kill() const;
  // The processes that no signal ends, since they sleep in the kernel: number, name and where.
  [[nodiscard]] std::vector<std::string> sleepers() const;
  // Kills, waits until no process is left, and removes the folders. Idempotent.
  [[nodiscard]] base::Status remove();

 private:
  struct Group {
    Hierarchy kind = Hierarchy::v2;
    std::vector<std::string> controllers;
    std::string path;
    base::Fd folder;  // locked while the owner lives
    base::Fd tasks;   // v1
  };
  friend base::Result<Groups> make_groups(Badge, const std::vector<GroupSpec>&, const std::string&);
  friend base::Result<CommandGroups> make_command_groups(Badge, const Groups&, std::uint64_t);
  friend base::Status prepare_command_groups(Badge, const Groups&);
  [[nodiscard]] base::Status add(const GroupSpec& spec, const std::string& name);
  [[nodiscard]] const Group* find(const std::string& controller) const;
  // The one that everything is killed by: of v2, else the freezer of v1, else any; nullptr: none.
  [[nodiscard]] const Group* ending() const;

  std::vector<Group> groups_;
  int v2_ = -1;
};

// The number behind `key` in a text of "key value" lines, or without a key that of its first line;
// 0 where it is not there.
[[nodiscard]] std::uint64_t value_in(std::string_view text, std::string_view key);

// Prefix of the folders' names; what follows is the run's id.
inline constexpr std::string_view kGroupPrefix = "cerco-";

// Makes `parent`/cerco-`run` for each spec (one folder where parents are the same) and writes the
// limits. Safe: only new folders are made (an existing one is an error), limits are written only
// inside of them, and names have no slash.
[[nodiscard]] base::Result<Groups> make_groups(Badge badge, const std::vector<GroupSpec>& specs,
                                               const std::string& run);
// Paths of the groups that make_groups would make.
[[nodiscard]] std::vector<std::string> group_paths(const std::vector<GroupSpec>& specs,
                                                   const std::string& run);

// Empties and removes a group folder whose owner is gone, with folders below it; nothing where it
// does not exist. EBUSY when its owner lives (holds its lock). Only folders named cerco-… are
// touched.
[[nodiscard]] base::Status remove_abandoned_group(const std::string& path);
// The same for every cerco-… folder below `parent` without a living owner; returns how many went.
[[nodiscard]] base::Result<std::uint64_t> collect_groups(Badge badge, const std::string& parent);

}  // namespace priv
