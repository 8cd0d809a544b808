// Leases on ranges of host uids.
#include "priv/lease.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/os.h"
#include "priv/cgroup.h"

namespace priv {

namespace {

// Whether the open file is still the one that the name stands for: between open and lock another
// process may have removed it.
bool still_named(int fd, const std::string& path) {
  struct stat held = {};
  struct stat named = {};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

bool lock_now(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

std::string folder_of(const std::string& state_dir) {
  return state_dir + "/leases";
}

// Two state folders on one host know nothing of each other: each begins at a place of its own.
std::uint32_t first_choice(const std::string& state_dir) {
  const std::string digest = base::sha256(state_dir);
  return static_cast<std::uint32_t>(std::stoul(digest.substr(0, 6), nullptr, 16)) % kMostLeases;
}

}  // namespace

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    release();
    lock_ = std::move(other.lock_);
    path_ = std::move(other.path_);
    first_ = other.first_;
  }
  return *this;
}

void Lease::release() {
  if (!held()) return;
  ::unlink(path_.c_str());
  lock_.reset();
}

base::Status Lease::note_groups(const std::vector<std::string>& folders) {
  return os::write_all(lock_.get(), base::join(folders, "\n"), path_);
}

base::Status Lease::empty_groups() const {
  const std::string text = TRY(os::read_all(lock_.get(), 64 * 1024, path_));
  for (const auto folder : base::split(text, '\n')) {
    if (!folder.empty()) TRY(remove_abandoned_group(std::string(folder)));
  }
  return {};
}

// A new file for the range; not_found when it exists or was taken at once.
base::Result<Lease> Lease::make(const std::string& folder, std::uint32_t number) {
  Lease lease;
  lease.path_ = fmt::format("{}/{:05}", folder, number);
  lease.first_ = kFirstLease + number * kLeaseSize;
  lease.lock_ = TRY(os::open(lease.path_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!lock_now(lease.lock_.get()) || !still_named(lease.lock_.get(), lease.path_)) {
    lease.lock_.reset();
    return base::system_error(lease.path_, EEXIST);
  }
  return lease;
}

// The lock of a file whose owner is gone; EWOULDBLOCK when it has a living one.
base::Result<Lease> Lease::seize(const std::string& folder, const std::string& name) {
  Lease lease;
  lease.path_ = folder + "/" + name;
  lease.lock_ = TRY(os::open(lease.path_, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0));
  if (!lock_now(lease.lock_.get()) || !still_named(lease.lock_.get(), lease.path_)) {
    lease.lock_.reset();
    return base::system_error(lease.path_, EWOULDBLOCK);
  }
  return lease;
}

base::Result<std::uint64_t> collect_leases(Badge, const std::string& state_dir) {
  const std::string folder = folder_of(state_dir);
  const auto names = os::list_folder(folder);
  if (!names) return std::uint64_t{0};
  TRY(os::own_folder(folder));
  std::uint64_t removed = 0;
  base::Status problem;
  for (const auto& name : *names) {
    auto lease = Lease::seize(folder, name);
    if (!lease) continue;
    if (auto empty = lease->empty_groups(); !empty) {
      lease->abandon();
      problem = std::move(empty);
      continue;
    }
    lease->release();
    ++removed;
  }
  if (!problem) return std::unexpected(std::move(problem).error());
  return removed;
}

base::Result<Lease> take_lease(Badge badge, const std::string& state_dir) {
  const std::string folder = folder_of(state_dir);
  TRY(os::own_folder(folder));
  // What cannot be emptied stays closed, and is no reason not to start.
  (void)collect_leases(badge, state_dir);
  const std::uint32_t first = first_choice(state_dir);
  for (std::uint32_t i = 0; i < kMostLeases; ++i) {
    auto lease = Lease::make(folder, (first + i) % kMostLeases);
    if (lease || lease.error().number != EEXIST) return lease;
  }
  return base::fail(base::Kind::missing, folder, "every range of host uids is in use",
                    "fewer sandboxes at a time");
}

}  // namespace priv
