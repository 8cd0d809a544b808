// Mounts by descriptor: fsopen(2), open_tree(2), mount_setattr(2), move_mount(2), pivot_root(2).
#pragma once

#include <cstdint>
#include <initializer_list>

#include "base/base.h"
#include "priv/badge.h"
#include "priv/namespaces.h"

namespace priv {

enum class Depth { one, whole };  // a mount alone, or with all that is mounted below it
enum class Place { file, folder };

// Attributes of mounts, as bits.
enum : std::uint64_t {
  kReadOnly = 1,  // MOUNT_ATTR_RDONLY
  kNoSuid = 2,
  kNoDev = 4,
  kNoExec = 8,
};

struct MountOption {
  const char* key;
  const char* value;  // nullptr: a flag
};

// A new file system of `kind`, attached nowhere: it goes when the descriptor does.
// Safe: nothing that exists is changed; what a file system of that kind may show is the kernel's
// and `kind` is one of a short list (tmpfs, proc, mqueue, devpts, ext4, overlay). [between clone
// and exec]
[[nodiscard]] base::Result<base::Fd> new_mount(Badge badge, const char* kind,
                                               std::initializer_list<MountOption> options,
                                               std::uint64_t attributes);
// A copy of the mount at `path` (below the descriptor `at`; "" is `at` itself), attached nowhere.
// Safe: the original is unchanged. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> clone_tree(Badge badge, const Inside& inside, int at,
                                                const char* path, Depth depth);
// Adds attributes to a mount. Safe: attributes only take away. [between clone and exec]
[[nodiscard]] base::Status set_attributes(Badge badge, const Inside& inside, int mount,
                                          std::uint64_t attributes, Depth depth);
// Attaches a mount over the file or folder `place` (O_PATH). Safe: refused unless the process has a
// mount namespace of its own. [between clone and exec]
[[nodiscard]] base::Status attach(Badge badge, const Inside& inside, int mount, int place);
// Detaches the mount at `path` below `folder`. Safe: as attach. [between clone and exec]
[[nodiscard]] base::Status detach(Badge badge, const Inside& inside, int folder, const char* path);
// Nothing that is mounted from here on reaches the host, and nothing of the host's reaches in.
// Safe: as attach. [between clone and exec]
[[nodiscard]] base::Status make_private(Badge badge, const Inside& inside);
// `root`, a mount that is attached, becomes the root; the old one with all below it is detached.
// Safe: as attach. [between clone and exec]
[[nodiscard]] base::Status pivot_root(Badge badge, const Inside& inside, int root);
// `root` becomes the root directory, and the old one stays mounted around it: no protection, for
// tests that take pivot_root out. Safe: only the caller's own view changes. [between clone and
// exec]
[[nodiscard]] base::Status change_root(Badge badge, const Inside& inside, int root);

// The file or folder at `path`, as if `root` were "/"; links that lead out of the tree cannot, and
// magic links are refused. [between clone and exec]
[[nodiscard]] base::Result<base::Fd> find_in(int root, const char* path);
// The same; made, owned by `owner`, where it is not there. Folders above it must exist.
[[nodiscard]] base::Result<base::Fd> make_place(Badge badge, const Inside& inside, int root,
                                                const char* path, Place kind, std::uint32_t owner);
[[nodiscard]] base::Status make_folder(Badge badge, const Inside& inside, int root,
                                       const char* path, std::uint32_t mode, std::uint32_t owner);
[[nodiscard]] base::Status make_link(Badge badge, const Inside& inside, int root, const char* path,
                                     const char* text, std::uint32_t owner);
// Safe, all four: paths resolve within `root`, and a file that exists is an error, never replaced.
// [between clone and exec]
[[nodiscard]] base::Status write_file(Badge badge, const Inside& inside, int root, const char* path,
                                      std::string_view content, std::uint32_t mode,
                                      std::uint32_t owner);
// A character device of the kernel's memory devices and tty (majors 1 and 5), or /dev/kvm, mode
// 0666. Safe: others are refused. [between clone and exec]
[[nodiscard]] base::Status make_device(Badge badge, const Inside& inside, int root,
                                       const char* path, unsigned major, unsigned minor,
                                       std::uint32_t owner);

}  // namespace priv
