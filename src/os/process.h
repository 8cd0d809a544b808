// Processes by descriptor, and starting our own programs.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"

namespace os {

// The calling process and its children run on `count` of the processors that it may use now, picked
// at random so that many that ask for few do not meet; all where there are no more. They can choose
// others again: this is what they count (nproc), no limit. Allocates nothing.
[[nodiscard]] base::Status use_processors(std::uint64_t count);

// A child of ours, by pidfd. It is killed and reaped at the owner's end unless it was waited for.
class Child {
 public:
  Child() = default;
  Child(int pid, base::Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&& other) noexcept;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  [[nodiscard]] bool running() const { return pid_ > 0; }
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }  // readable when it has ended
  void kill(int signal) const;
  // It goes on by itself: neither killed nor waited for.
  void leave() { pid_ = 0; }
  // Waits for its end and gives the raw wait status.
  [[nodiscard]] base::Result<int> wait();

 private:
  int pid_ = 0;
  base::Fd pidfd_;
};

// A pidfd (pidfd_open(2)) of a child that was not reaped yet.
[[nodiscard]] base::Result<base::Fd> open_pidfd(int pid);

// Starts a program of ours: `argv[0]` is its path, the environment is exactly `env`, and descriptor
// `pairs[i].second` is a copy of `pairs[i].first`; 0, 1 are /dev/null, 2 is ours; nothing else is
// open. The child gets SIGKILL when this process ends (PR_SET_PDEATHSIG). Errors name the failing
// call.
[[nodiscard]] base::Result<Child> spawn(std::span<const std::string> argv,
                                        std::span<const std::string> env,
                                        std::span<const std::pair<int, int>> pairs);

// Undoes the signal that spawn() asked for: for a process that sees its starter's end on a channel
// and has something left to do then.
[[nodiscard]] base::Status outlive_parent();

}  // namespace os
