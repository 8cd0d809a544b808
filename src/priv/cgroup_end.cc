// Control groups: freezing, killing, removing.
#include "priv/cgroup_end.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "os/os.h"
#include "priv/cgroup.h"

namespace priv {

namespace {

// Tries to remove every 0.2 ms at first, then more slowly; a process that will not die (it sleeps
// in the kernel) ends the wait after about five seconds.
constexpr int kRounds = 400;

void pause_for(int round) {
  const timespec time = {0, round < 50 ? 200'000 : 15'000'000};
  ::nanosleep(&time, nullptr);
}

base::Result<std::string> read_at(int folder, const std::string& file) {
  const base::Fd fd = TRY(os::openat2(folder, file, O_RDONLY, 0, 0));
  return os::read_all(fd.get(), 1 << 20, file);
}

bool is_v2(int folder) {
  return ::faccessat(folder, "cgroup.events", F_OK, 0) == 0;
}

// The processes that the folder lists, by this process's pid namespace.
base::Result<int> signal_all(int folder) {
  const std::string text = TRY(read_at(folder, "cgroup.procs"));
  int count = 0;
  for (const auto line : base::split(text, '\n')) {
    const auto pid = base::parse_number(line);
    if (!pid || *pid == 0) continue;  // 0: of another pid namespace
    ::kill(static_cast<pid_t>(*pid), SIGKILL);
    ++count;
  }
  // Of v1 a group lists only its own; those of single commands lie below.
  for (const std::string& name : TRY(os::list_folder("/proc/self/fd/" + std::to_string(folder)))) {
    if (!name.starts_with(kCommandPrefix)) continue;
    const auto below = os::openat2(folder, name, O_RDONLY | O_DIRECTORY, 0, 0);
    if (below) count += TRY(signal_all(below->get()));
  }
  return count;
}

// Number, name and place in the kernel of a process that sleeps there uninterruptibly (proc(5)); ""
// for any other.
std::string sleeper(std::uint64_t pid) {
  const std::string folder = fmt::format("/proc/{}/", pid);
  // "pid (name) state …": the name may hold anything, so the last parenthesis counts.
  const std::string stat = os::read_file(folder + "stat", 4096).value_or("");
  const auto end = stat.rfind(") D ");
  const auto begin = stat.find('(');
  if (end == std::string::npos || begin > end) return {};
  const std::string name = base::printable(stat.substr(begin + 1, end - begin - 1));
  const std::string place = os::read_file(folder + "wchan", 4096).value_or("");
  if (place.empty() || place == "0") return fmt::format("{} ({})", pid, name);
  return fmt::format("{} ({}, in {})", pid, name, base::printable(place));
}

}  // namespace

base::Status freeze_group(int folder, bool v2) {
  TRY(write_group_file(folder, v2 ? "cgroup.freeze" : "freezer.state", v2 ? "1" : "FROZEN"));
  for (int round = 0; round < kRounds; ++round) {
    const std::string text = TRY(read_at(folder, v2 ? "cgroup.events" : "freezer.state"));
    if (text.find(v2 ? "frozen 1" : "FROZEN") != std::string::npos) return {};
    pause_for(round);
  }
  return base::system_error("freeze", ETIMEDOUT);
}

base::Status thaw_group(int folder, bool v2) {
  return write_group_file(folder, v2 ? "cgroup.freeze" : "freezer.state", v2 ? "0" : "THAWED");
}

base::Status kill_group(int folder, bool v2) {
  if (v2) return write_group_file(folder, "cgroup.kill", "1");
  // Frozen, no process can fork faster than it is killed, nor end and leave its number to another.
  bool freezer = ::faccessat(folder, "freezer.state", F_OK, 0) == 0;
  for (int round = 0; round < kRounds; ++round) {
    // One that sleeps in the kernel never stands still; the others are killed all the same.
    const bool still = freezer && freeze_group(folder, false);
    const auto count = signal_all(folder);
    if (freezer) TRY(thaw_group(folder, false));
    freezer = still;
    if (!count) return std::unexpected(count.error());
    if (*count == 0) return {};
    pause_for(round);
  }
  return base::system_error("kill", ETIMEDOUT);
}

base::Status remove_group(int folder, const std::string& path) {
  for (int round = 0; round < kRounds; ++round) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
    if (errno != EBUSY && errno != ENOTEMPTY) return base::system_error("rmdir " + path);
    // Folders that were made below: nobody inside can reach a cgroupfs, so this is an operator's.
    if (const auto names = os::list_folder(path)) {
      for (const auto& name : *names) (void)::unlinkat(folder, name.c_str(), AT_REMOVEDIR);
    }
    pause_for(round);
  }
  return base::system_error("rmdir " + path, ETIMEDOUT);
}

base::Status Groups::freeze() const {
  for (const auto& group : groups_) {
    if (group.kind == Hierarchy::v2) return freeze_group(group.folder.get(), true);
  }
  if (const Group* freezer = find("freezer")) return freeze_group(freezer->folder.get(), false);
  return base::fail(base::Kind::missing, "freeze", "no cgroup can freeze here",
                    "a v2 hierarchy or the freezer of v1");
}

base::Status Groups::thaw() const {
  for (const auto& group : groups_) {
    if (group.kind == Hierarchy::v2) return thaw_group(group.folder.get(), true);
  }
  if (const Group* freezer = find("freezer")) return thaw_group(freezer->folder.get(), false);
  return base::fail(base::Kind::missing, "thaw", "no cgroup can freeze here", {});
}

// Every process is in every group, so that one stands for all.
const Groups::Group* Groups::ending() const {
  for (const auto& group : groups_) {
    if (group.kind == Hierarchy::v2) return &group;
  }
  const Group* freezer = find("freezer");
  if (freezer != nullptr || groups_.empty()) return freezer;
  return groups_.data();
}

base::Status Groups::kill() const {
  const Group* group = ending();
  if (group == nullptr) return {};
  return kill_group(group->folder.get(), group->kind == Hierarchy::v2);
}

std::vector<std::string> Groups::sleepers() const {
  std::vector<std::string> all;
  const Group* group = ending();
  if (group == nullptr) return all;
  const auto text = read_at(group->folder.get(), "cgroup.procs");
  if (!text) return all;
  for (const auto line : base::split(*text, '\n')) {
    std::string found = sleeper(base::parse_number(line).value_or(0));
    if (!found.empty()) all.push_back(std::move(found));
  }
  return all;
}

base::Status Groups::remove() {
  if (groups_.empty()) return {};
  TRY(kill());
  while (!groups_.empty()) {
    TRY(remove_group(groups_.back().folder.get(), groups_.back().path));
    groups_.pop_back();
  }
  v2_ = -1;
  return {};
}

Groups::~Groups() {
  (void)remove();
}

Groups& Groups::operator=(Groups&& other) noexcept {
  if (this != &other) {
    (void)remove();
    groups_ = std::move(other.groups_);
    v2_ = std::exchange(other.v2_, -1);
  }
  return *this;
}

base::Status remove_abandoned_group(const std::string& path) {
  if (!path.substr(path.rfind('/') + 1).starts_with(kGroupPrefix)) {
    return base::system_error(path, EINVAL);
  }
  const auto folder = os::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
  if (!folder && folder.error().number == ENOENT) return {};
  if (!folder) return std::unexpected(folder.error());
  if (::flock(folder->get(), LOCK_EX | LOCK_NB) != 0) return base::system_error(path, EBUSY);
  TRY(kill_group(folder->get(), is_v2(folder->get())));
  return remove_group(folder->get(), path);
}

base::Result<std::uint64_t> collect_groups(Badge, const std::string& parent) {
  const auto names = os::list_folder(parent);
  if (!names) return std::uint64_t{0};
  std::uint64_t removed = 0;
  base::Status all;  // the first that would not go; the others go all the same
  for (const auto& name : *names) {
    if (!name.starts_with(kGroupPrefix)) continue;
    const auto gone = remove_abandoned_group(parent + "/" + name);
    if (!gone && gone.error().number == EBUSY) continue;  // its owner lives
    if (gone) ++removed;
    if (!gone && all) all = gone;
  }
  if (!all) return std::unexpected(all.error());
  return removed;
}

}  // namespace priv
