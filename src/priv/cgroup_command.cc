// Control groups of single commands.
#include "priv/cgroup_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/os.h"
#include "priv/cgroup_end.h"

namespace priv {

namespace {

constexpr int kMoveRounds = 100;
constexpr std::string_view kSocketLimit = "memory.kmem.tcp.limit_in_bytes";

base::Result<std::string> read_at(int folder, const std::string& file) {
  const base::Fd fd = TRY(os::openat2(folder, file, O_RDONLY, 0, 0));
  return os::read_all(fd.get(), std::size_t{64} * 1024, file);
}

std::unexpected<base::Error> no_group() {
  return base::fail(base::Kind::missing, "commands of a session",
                    "no cgroup to tell their processes apart by",
                    "a v2 hierarchy or the freezer of v1 that this process may write");
}

bool holds_nobody(std::string_view text) {
  return text.find_first_not_of('\n') == std::string_view::npos;
}

}  // namespace

base::Result<CommandGroups::Group> CommandGroups::make(const std::string& path, Hierarchy kind,
                                                       bool memory) {
  if (::mkdir(path.c_str(), 0755) != 0) return base::system_error("mkdir " + path);
  Group group;
  group.kind = kind;
  group.memory = memory;
  group.path = path;
  group.folder = TRY(os::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
  const char* entry = kind == Hierarchy::v1 ? "tasks" : "cgroup.procs";
  group.entry = TRY(os::openat2(group.folder.get(), entry, O_WRONLY, 0, 0));
  return group;
}

base::Result<CommandGroups> make_command_groups(Badge, const Groups& groups, std::uint64_t number) {
  const Groups::Group* ends = groups.ending();
  if (ends == nullptr) return no_group();
  const std::string name = fmt::format("/{}{}", kCommandPrefix, number);
  CommandGroups made;
  const Groups::Group* memory = groups.find("memory");
  made.groups_.push_back(
      TRY_IN("cgroup", CommandGroups::make(ends->path + name, ends->kind, memory == ends)));
  if (memory == nullptr || memory == ends) {
    if (memory != nullptr && memory->kind == Hierarchy::v2) {
      TRY_IN("cgroup memory",
             write_group_file(made.groups_.back().folder.get(), "memory.oom.group", "1"));
    }
    return made;
  }
  made.groups_.push_back(
      TRY_IN("cgroup memory", CommandGroups::make(memory->path + name, memory->kind, true)));
  // On v1 the sockets of a group are counted, towards the limit above it too, only where the group
  // has a limit of its own (tcpmem_active).
  if (const auto limit = read_at(memory->folder.get(), std::string(kSocketLimit))) {
    TRY_IN("cgroup memory",
           write_group_file(made.groups_.back().folder.get(), std::string(kSocketLimit), *limit));
  }
  return made;
}

base::Status prepare_command_groups(Badge, const Groups& groups) {
  if (groups.ending() == nullptr) return no_group();
  const Groups::Group* memory = groups.find("memory");
  if (memory == nullptr || memory->kind != Hierarchy::v2) return {};
  const std::string inner = memory->path + "/init";
  if (::mkdir(inner.c_str(), 0755) != 0) return base::system_error("mkdir " + inner);
  const base::Fd folder = TRY(os::open(inner, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0));
  for (int round = 0; round < kMoveRounds; ++round) {
    const std::string listed = TRY(read_at(memory->folder.get(), "cgroup.procs"));
    if (holds_nobody(listed)) {
      TRY(write_group_file(memory->folder.get(), "cgroup.subtree_control", "+memory"));
      return write_group_file(memory->folder.get(), "memory.oom.group", "0");
    }
    for (const auto line : base::split(listed, '\n')) {
      if (line.empty()) continue;
      const auto moved = write_group_file(folder.get(), "cgroup.procs", line);
      if (!moved && moved.error().number != ESRCH) return moved;
    }
  }
  return base::system_error("move cerco-init into its cgroup", EBUSY);
}

std::vector<int> CommandGroups::entries() const {
  std::vector<int> all;
  for (const Group& group : groups_) all.push_back(group.entry.get());
  return all;
}

base::Status CommandGroups::kill() const {
  if (groups_.empty()) return {};
  const Group& ends = groups_.front();
  return kill_group(ends.folder.get(), ends.kind == Hierarchy::v2);
}

bool CommandGroups::remove_empty() {
  // Folders may be many and long in use; descriptors are few.
  for (Group& group : groups_) {
    group.folder.reset();
    group.entry.reset();
  }
  while (!groups_.empty()) {
    if (::rmdir(groups_.back().path.c_str()) != 0 && errno != ENOENT) return false;
    groups_.pop_back();
  }
  return true;
}

std::uint64_t CommandGroups::memory_value(const char* v1, const char* v2,
                                          std::string_view key) const {
  for (const Group& group : groups_) {
    if (!group.memory) continue;
    const auto text = read_at(group.folder.get(), group.kind == Hierarchy::v1 ? v1 : v2);
    return text ? value_in(*text, key) : 0;
  }
  return 0;
}

std::uint64_t CommandGroups::oom_kills() const {
  return memory_value("memory.oom_control", "memory.events", "oom_kill");
}

std::uint64_t CommandGroups::memory_peak() const {
  return memory_value("memory.max_usage_in_bytes", "memory.peak", {});
}

}  // namespace priv
