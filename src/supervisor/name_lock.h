// The name of a run, which one living run has at a time.
#pragma once

#include <string>

#include "base/base.h"

namespace supervisor {

// A locked file STATE/leases/name-NAME. While the lock is held the name is taken; whoever holds it,
// and nobody else, removes the file.
class NameLock {
 public:
  // bad_input when a living run has the name, or when something else than a file lies there.
  [[nodiscard]] static base::Result<NameLock> take(const std::string& state_dir,
                                                   const std::string& name);
  NameLock() = default;
  NameLock(NameLock&& other) noexcept = default;
  NameLock& operator=(NameLock&& other) noexcept;
  NameLock(const NameLock&) = delete;
  NameLock& operator=(const NameLock&) = delete;
  ~NameLock() { release(); }

  // Removes the file, then lets go of the lock.
  void release();

 private:
  base::Fd lock_;
  std::string path_;
};

}  // namespace supervisor
