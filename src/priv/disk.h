// The working disk of a sandbox: a sparse ext4 image behind a loop device, mounted nowhere.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/disk_shelf.h"

namespace priv {

// Whether all blocks of a disk are taken at once, so that they are there whatever else the host
// writes.
enum class Blocks { as_written, reserved };

// A fresh disk: a sparse image from the shelf that has no name, so that nothing is left of it
// whatever happens; a loop device and a mount (nosuid, nodev) hold it. When
// the last mount goes, the device and the file go with it. Safe: the kernel's ext4 only ever reads
// what our mkfs wrote, never an image from elsewhere.
[[nodiscard]] base::Result<base::Fd> make_disk(Badge badge, const std::string& state_dir,
                                               DiskSize size, Blocks blocks);
// Takes the blocks of a file that has holes, up to its size. missing where the disk has no room for
// them or its file system cannot do that. Safe: nothing that is written changes.
[[nodiscard]] base::Status reserve_blocks(Badge badge, int file);

// The same on a device that is there: a guest's disk, whose image take_image() gave its machine.
// Safe: refused for anything but a virtio disk, which only a guest has that cerco booted.
[[nodiscard]] base::Result<base::Fd> mount_guest_disk(Badge badge, std::string_view device);

// A folder at the top of the disk for one place inside, owned by `owner`.
[[nodiscard]] base::Status make_disk_folder(Badge badge, int disk, const std::string& name,
                                            std::uint32_t mode, std::uint32_t owner);

// Throws away what was not written yet, for a disk that nobody will read again: its last unmount
// has nothing left to do. Safe: refused for what is not a whole ext4 of ours on a loop device.
[[nodiscard]] base::Status discard_disk(Badge badge, int disk);

struct DiskUse {
  std::uint64_t used = 0;  // bytes
  bool full = false;       // no block or no inode is left for the workload
};
[[nodiscard]] base::Result<DiskUse> disk_use(int disk);

}  // namespace priv
