// Landlock: file access below named paths only (landlock(7),
// Documentation/userspace-api/landlock.rst).
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "confine/confine.h"

namespace confine {
namespace {

// The newest form of the kernel's structure; older kernels take the bytes that they know.
struct Ruleset {
  std::uint64_t fs = 0;
  std::uint64_t net = 0;
  std::uint64_t scoped = 0;
};
constexpr std::uint64_t kTruncate = 1ULL << 14;     // ABI 3
constexpr std::uint64_t kIoctlDevice = 1ULL << 15;  // ABI 5
constexpr std::uint64_t kScopes = 0b11;             // ABI 6: abstract Unix sockets, signals

constexpr std::uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// What a rule for something that is not a folder may name.
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                   LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kIoctlDevice;

std::uint64_t handled(int abi) {
  std::uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // ABI 1
  if (abi >= 2) all |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3) all |= kTruncate;
  if (abi >= 5) all |= kIoctlDevice;
  return all;
}

Outcome failed(const char* step) {
  return std::unexpected(Failure{step, errno});
}

Outcome add(int ruleset, const std::string& path, std::uint64_t rights) {
  const base::Fd opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!opened.open()) return failed("landlock: open");
  struct stat about = {};
  if (::fstat(opened.get(), &about) != 0) return failed("landlock: fstat");
  if (!S_ISDIR(about.st_mode)) rights &= kOfFiles;
  const landlock_path_beneath_attr rule = {rights, opened.get()};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
    return failed("landlock_add_rule");
  }
  return {};
}

}  // namespace

int landlock_abi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Outcome landlock(std::span<const std::string> read, std::span<const std::string> write) {
  const int abi = landlock_abi();
  if (abi == 0) return failed("landlock");
  const Ruleset rules = {handled(abi), 0, abi >= 6 ? kScopes : 0};
  const std::size_t size = abi >= 6 ? sizeof rules : sizeof rules.fs;
  const base::Fd ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0)));
  if (!ruleset.open()) return failed("landlock_create_ruleset");
  for (const std::string& path : read) {
    if (const Outcome done = add(ruleset.get(), path, kRead); !done) return done;
  }
  for (const std::string& path : write) {
    if (const Outcome done = add(ruleset.get(), path, handled(abi)); !done) return done;
  }
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0)
    return failed("landlock_restrict_self");
  return {};
}

}  // namespace confine
