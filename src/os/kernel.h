// Questions to the kernel: what it can do and what this process may use. Nothing is changed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/base.h"

namespace os {

// The Landlock ABI (landlock_create_ruleset(2), VERSION), 0 where there is none.
[[nodiscard]] int landlock_abi();
// Whether seccomp(2) takes filters with the ERRNO action.
[[nodiscard]] bool has_seccomp_filters();
// Whether nf_tables answers on a netfilter socket (NFT_MSG_GETGEN); the kernel may load its module
// for it.
[[nodiscard]] bool has_nf_tables();
[[nodiscard]] std::string kernel_release();  // uname(2), "" on failure

struct MemorySize {
  std::uint64_t total = 0;  // bytes, sysinfo(2)
  std::uint64_t swap = 0;
};
[[nodiscard]] MemorySize memory_size();
[[nodiscard]] std::uint64_t hard_limit_of_files();  // getrlimit(2) RLIMIT_NOFILE; 0 on failure
[[nodiscard]] unsigned usable_processors();         // sched_getaffinity(2); 0 on failure

struct DiskRoom {
  std::uint64_t free = 0;  // bytes, for others than the superuser
  std::uint64_t total = 0;
};
// statfs(2) of the path or of its nearest folder that is there.
[[nodiscard]] base::Result<DiskRoom> disk_room(std::string path);

// The whole disk that the nearest folder of `path` that is there lies on, as "MAJOR:MINOR"; missing
// where its file system lies on no single block device, or where /sys does not show it.
[[nodiscard]] base::Result<std::string> disk_under(std::string path);
// Whether the file system at `path` is an overlay (statfs(2)).
[[nodiscard]] bool is_overlay(const std::string& path);
// Whether the kernel has this kind of file system (/proc/filesystems).
[[nodiscard]] bool has_file_system(std::string_view kind);

enum class Access { exists, read, write };
// faccessat2(2) with the effective ids; a read-only mount is not writable.
[[nodiscard]] bool may_access(const std::string& path, Access access);

enum class PathKind { none, folder, file, link, other };
[[nodiscard]] PathKind path_kind(const std::string& path);  // of the path itself, no link followed
[[nodiscard]] base::Result<std::string> read_link(const std::string& path);

}  // namespace os
