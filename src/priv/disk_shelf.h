// The shelf of disk images, STATE/patterns: per size a pattern, and a spare that the next start
// takes.
#pragma once

#include <cstdint>
#include <string>

#include "base/base.h"
#include "priv/badge.h"

namespace priv {

struct DiskSize {
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
};

// A fresh disk image of at least 1 MiB that has no name: the spare where there is one, else a copy
// of the pattern, which mkfs.ext4 writes where there is none. Two callers never get the same. Safe:
// reads and writes below `state_dir` only.
[[nodiscard]] base::Result<base::Fd> take_image(Badge badge, const std::string& state_dir,
                                                DiskSize size);

// Makes sure that a pattern and a spare of that size lie there, whole, and that the spare is on its
// way to the host's disk: a loop device first writes out what of its file is not. The names carry
// size, inodes and format, that of a spare also the host's boot; nobody ever mounts a pattern.
// Safe: writes below `state_dir` only.
[[nodiscard]] base::Status fill_shelf(Badge badge, const std::string& state_dir, DiskSize size);

}  // namespace priv
