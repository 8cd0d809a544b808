// The name of a run.
#include "supervisor/name_lock.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "os/os.h"

namespace supervisor {

namespace {

constexpr int kAttempts = 5;
// A collector of garbage holds the lock of each file for a moment.
constexpr std::chrono::milliseconds kPause{10};

// Between open and lock the run before may have removed the file.
bool still_named(int fd, const std::string& path) {
  struct stat held = {};
  struct stat named = {};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

base::Result<NameLock> NameLock::take(const std::string& state_dir, const std::string& name) {
  const std::string path = state_dir + "/leases/name-" + name;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    base::Fd file = TRY(os::open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!S_ISREG(TRY(os::fstat(file.get(), path)).st_mode)) {
      return base::bad_input(path, "not a file", "no such file");
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && still_named(file.get(), path)) {
      NameLock taken;
      taken.lock_ = std::move(file);
      taken.path_ = path;
      return taken;
    }
    std::this_thread::sleep_for(kPause);
  }
  return base::bad_input("--name " + name, "a run of that name is alive", "another name");
}

NameLock& NameLock::operator=(NameLock&& other) noexcept {
  if (this != &other) {
    release();
    lock_ = std::move(other.lock_);
    path_ = std::move(other.path_);
  }
  return *this;
}

void NameLock::release() {
  if (!lock_.open()) return;
  (void)::unlink(path_.c_str());
  lock_.reset();
}

}  // namespace supervisor
