// Control groups: making, limits, entering, counters.
#include "priv/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "os/os.h"
#include "priv/cgroup_end.h"

namespace priv {

namespace {

constexpr std::size_t kMostText = std::size_t{64} * 1024;

base::Result<std::string> read_at(int folder, const std::string& file) {
  const base::Fd fd = TRY(os::openat2(folder, file, O_RDONLY, 0, 0));
  return os::read_all(fd.get(), kMostText, file);
}

std::string path_of(const GroupSpec& spec, const std::string& run) {
  return fmt::format("{}/{}{}", spec.parent, kGroupPrefix, run);
}

// Makes the folder and holds its lock. A collector may have had the lock first and removed the
// folder again, so that what was locked must still be what the name stands for.
base::Result<base::Fd> make_locked(const std::string& path) {
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (::mkdir(path.c_str(), 0755) != 0) return base::system_error("mkdir " + path);
    auto folder = os::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (!folder && folder.error().number == ENOENT) continue;
    if (!folder) return folder;
    if (::flock(folder->get(), LOCK_EX | LOCK_NB) == 0 &&
        ::faccessat(folder->get(), "cgroup.procs", F_OK, 0) == 0) {
      return folder;
    }
    (void)::rmdir(path.c_str());
  }
  return base::system_error("lock " + path, EAGAIN);
}

// On v2 a limit's file is there only when the parent hands its controller down.
base::Status enable_below(const std::string& parent, const std::string& controller) {
  const base::Fd folder = TRY(os::open(parent, O_RDONLY | O_DIRECTORY, 0));
  const std::string enabled = TRY(read_at(folder.get(), "cgroup.subtree_control"));
  for (const auto line : base::split(enabled, '\n')) {
    for (const auto word : base::split(line, ' ')) {
      if (word == controller) return {};
    }
  }
  return write_group_file(folder.get(), "cgroup.subtree_control", "+" + controller);
}

}  // namespace

base::Status write_group_file(int folder, const std::string& file, std::string_view text) {
  const base::Fd fd = TRY(os::openat2(folder, file, O_WRONLY, 0, 0));
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return base::system_error(fmt::format("write {} into {}", text, file));
  }
  return {};
}

std::vector<std::string> group_paths(const std::vector<GroupSpec>& specs, const std::string& run) {
  std::vector<std::string> paths;
  for (const auto& spec : specs) {
    const std::string path = path_of(spec, run);
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

base::Result<Groups> make_groups(Badge, const std::vector<GroupSpec>& specs,
                                 const std::string& run) {
  if (run.empty() || run.find('/') != std::string::npos)
    return base::system_error("cgroup", EINVAL);
  Groups groups;
  for (const auto& spec : specs) TRY(groups.add(spec, run));
  return groups;
}

base::Status Groups::add(const GroupSpec& spec, const std::string& run) {
  const std::string path = path_of(spec, run);
  if (spec.kind == Hierarchy::v2 && spec.controller != "unified" && !spec.limits.empty()) {
    TRY_IN("cgroup " + spec.controller, enable_below(spec.parent, spec.controller));
  }
  auto group = std::ranges::find(groups_, path, &Group::path);
  if (group == groups_.end()) {
    Group made;
    made.kind = spec.kind;
    made.path = path;
    made.folder = TRY_IN("cgroup " + spec.controller, make_locked(path));
    groups_.push_back(std::move(made));
    group = std::prev(groups_.end());
    if (spec.kind == Hierarchy::v1) {
      group->tasks = TRY(os::openat2(group->folder.get(), "tasks", O_WRONLY, 0, 0));
    } else if (v2_ < 0) {
      v2_ = group->folder.get();
    }
  }
  group->controllers.push_back(spec.controller);
  for (const auto& [file, text] : spec.limits) {
    if (file.find('/') != std::string::npos) return base::system_error("cgroup " + file, EINVAL);
    // The kernel takes one line a write(2).
    for (const auto line : base::split(text, '\n')) {
      TRY_IN("cgroup " + spec.controller, write_group_file(group->folder.get(), file, line));
    }
  }
  return {};
}

base::Status Groups::enter_v1() const {
  for (const auto& group : groups_) {
    if (group.kind != Hierarchy::v1) continue;
    if (::write(group.tasks.get(), "0", 1) != 1) return base::system_error("enter " + group.path);
  }
  return {};
}

const Groups::Group* Groups::find(const std::string& controller) const {
  for (const auto& group : groups_) {
    if (std::ranges::find(group.controllers, controller) != group.controllers.end()) return &group;
  }
  return nullptr;
}

bool Groups::has(const std::string& controller, Hierarchy kind) const {
  const Group* group = find(controller);
  return group != nullptr && group->kind == kind;
}

base::Result<std::string> Groups::read(const std::string& controller,
                                       const std::string& file) const {
  const Group* group = find(controller);
  if (group == nullptr) return base::fail(base::Kind::not_found, controller, "no such cgroup", {});
  return read_at(group->folder.get(), file);
}

std::uint64_t Groups::value(const std::string& controller, const std::string& file,
                            std::string_view key) const {
  const auto text = read(controller, file);
  return text ? value_in(*text, key) : 0;
}

std::uint64_t value_in(std::string_view text, std::string_view key) {
  for (const auto line : base::split(text, '\n')) {
    const auto words = base::split(line, ' ');
    if (key.empty()) return base::parse_number(words[0]).value_or(0);
    if (words.size() == 2 && words[0] == key) return base::parse_number(words[1]).value_or(0);
  }
  return 0;
}

base::Result<base::Fd> Groups::watch_memory() const {
  const Group* group = find("memory");
  if (group == nullptr) return base::Fd();
  if (group->kind == Hierarchy::v2) {
    base::Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!watch.open()) return base::system_error("inotify_init1");
    if (::inotify_add_watch(watch.get(), (group->path + "/memory.events").c_str(), IN_MODIFY) < 0) {
      return base::system_error("watch memory.events");
    }
    return watch;
  }
  base::Fd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event.open()) return base::system_error("eventfd");
  const base::Fd control =
      TRY(os::openat2(group->folder.get(), "memory.oom_control", O_RDONLY, 0, 0));
  TRY(write_group_file(group->folder.get(), "cgroup.event_control",
                       fmt::format("{} {}", event.get(), control.get())));
  return event;
}

}  // namespace priv
