// What disks are made of, and the ones that lie ready.
#include "priv/disk_shelf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "os/os.h"

namespace priv {

namespace {

constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kSmallest = 1 << 20;
constexpr std::size_t kPiece = std::size_t{256} * 1024;
// Changes with the options of mkfs below, so that an older pattern is not taken.
constexpr const char* kFormat = "1";

DiskSize rounded(DiskSize size) {
  size.bytes = std::max(size.bytes / kBlock * kBlock, kSmallest);
  // An inode takes 256 bytes: more than one a block would leave no room for data.
  size.inodes = std::clamp<std::uint64_t>(size.inodes, 64, size.bytes / kBlock);
  return size;
}

std::string folder_of(const std::string& state_dir) {
  return state_dir + "/patterns";
}

std::string pattern_path(const std::string& state_dir, DiskSize size) {
  return fmt::format("{}/{}-{}-{}.ext4", folder_of(state_dir), size.bytes, size.inodes, kFormat);
}

constexpr std::string_view kSpare = ".spare";

// A spare may still be on its way to the host's disk when a crash of the host comes, so each start
// of the host has names of its own.
base::Result<std::string> spare_path(const std::string& state_dir, DiskSize size) {
  std::string boot = TRY(os::read_file("/proc/sys/kernel/random/boot_id", 64));
  boot.resize(std::min<std::size_t>(boot.size(), 36));
  return fmt::format("{}.{}{}", pattern_path(state_dir, size), boot, kSpare);
}

// A file without a name. Where the file system has no O_TMPFILE, one whose name goes at once.
base::Result<base::Fd> nameless(const std::string& folder) {
  auto file = os::open(folder, O_RDWR | O_TMPFILE, 0600);
  if (file || (file.error().number != EOPNOTSUPP && file.error().number != EISDIR)) return file;
  const std::string path = folder + "/" + base::random_base32(16) + ".new";
  file = os::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (file) ::unlink(path.c_str());
  return file;
}

constexpr const char* kFeatures =
    "none,sparse_super,large_file,huge_file,filetype,dir_index,dir_nlink,ext_attr,extra_isize,"
    "extent,flex_bg,uninit_bg";

// No journal and no barriers: the disk ends with the run, so nothing on it must outlive a crash.
// The inode tables count as zeroed, as those of a sparse file are.
base::Status format(int image, DiskSize size) {
  const std::string target = "/proc/self/fd/9";
  const std::vector<std::string> argv = {
      "/sbin/mkfs.ext4",
      "-q",
      "-F",
      "-b",
      "4096",
      "-m",
      "0",
      "-N",
      std::to_string(size.inodes),
      "-O",
      kFeatures,
      "-E",
      "lazy_itable_init=0,assume_storage_prezeroed=1,root_owner=0:0,nodiscard",
      target};
  const std::array<std::string, 2> env = {"MKE2FS_CONFIG=/dev/null", "LANG=C"};
  // What it says is worth reading only when it fails: it warns of an empty configuration.
  const base::Fd words(::memfd_create("mkfs", MFD_CLOEXEC));
  if (!words.open()) return base::system_error("memfd_create");
  const std::array<std::pair<int, int>, 2> fds = {std::pair{words.get(), 2}, std::pair{image, 9}};
  os::Child mkfs = TRY(os::spawn(argv, env, fds));
  const int status = TRY(mkfs.wait());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string said = os::read_all(words.get(), std::size_t{64} * 1024, "mkfs").value_or("");
    return base::fail(base::Kind::system, "mkfs.ext4",
                      fmt::format("ended with {:#x}: {}", status, base::printable(said)),
                      "a disk that can be formatted");
  }
  return {};
}

base::Result<base::Fd> open_pattern(const std::string& path, std::uint64_t bytes) {
  base::Fd pattern = TRY(os::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  const struct stat status = TRY(os::fstat(pattern.get(), path));
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != bytes) {
    return base::bad_input(path, "not a pattern of this size", "no such file");
  }
  return pattern;
}

bool all_zero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Writes the blocks that hold something; neighbours go in one call.
base::Status copy_piece(int to, std::string_view bytes, off_t offset) {
  while (!bytes.empty()) {
    std::size_t zeros = 0;
    while (zeros < bytes.size() && all_zero(bytes.substr(zeros, kBlock))) zeros += kBlock;
    zeros = std::min(zeros, bytes.size());
    bytes.remove_prefix(zeros);
    offset += static_cast<off_t>(zeros);
    std::size_t length = 0;
    while (length < bytes.size() && !all_zero(bytes.substr(length, kBlock))) length += kBlock;
    length = std::min(length, bytes.size());
    if (length == 0) continue;
    if (::pwrite(to, bytes.data(), length, offset) != static_cast<ssize_t>(length)) {
      return base::system_error("write disk image");
    }
    bytes.remove_prefix(length);
    offset += static_cast<off_t>(length);
  }
  return {};
}

base::Status copy_pattern(int from, int to, std::uint64_t bytes) {
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  for (off_t at = ::lseek(from, 0, SEEK_DATA); at >= 0; at = ::lseek(from, at, SEEK_DATA)) {
    const off_t end = ::lseek(from, at, SEEK_HOLE);
    while (at < end) {
      const auto want = std::min<std::size_t>(kPiece, static_cast<std::size_t>(end - at));
      const ssize_t got = ::pread(from, piece.get(), want, at);
      if (got <= 0) return base::system_error("read disk pattern", got < 0 ? errno : EIO);
      TRY(copy_piece(to, {piece.get(), static_cast<std::size_t>(got)}, at));
      at += got;
    }
  }
  if (errno != ENXIO) return base::system_error("read disk pattern");
  if (::ftruncate(to, static_cast<off_t>(bytes)) != 0) return base::system_error("size disk image");
  return {};
}

// A file gets its name when it is whole, so that nobody finds a part of one. Where another start
// was quicker (EEXIST), or a file that had a name cannot get one again (ENOENT), this one serves
// once.
base::Status give_name(int file, const std::string& path) {
  const std::string made = fmt::format("/proc/self/fd/{}", file);
  if (::linkat(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0 &&
      errno != EEXIST && errno != ENOENT) {
    return base::system_error("link " + path);
  }
  return {};
}

// The pattern, from its file or made anew.
base::Result<base::Fd> pattern_for(const std::string& state_dir, DiskSize size) {
  const std::string path = pattern_path(state_dir, size);
  auto found = open_pattern(path, size.bytes);
  if (found || found.error().number != ENOENT) return found;
  const base::Fd image = TRY(nameless(folder_of(state_dir)));
  if (::ftruncate(image.get(), static_cast<off_t>(size.bytes)) != 0) {
    return base::system_error("size disk pattern");
  }
  TRY(format(image.get(), size));
  // Sparse again, whatever mkfs wrote as zeros.
  base::Fd copy = TRY(nameless(folder_of(state_dir)));
  TRY(copy_pattern(image.get(), copy.get(), size.bytes));
  // A crash of the host must not leave a name without what belongs to it: no start would ever mend
  // that.
  if (::fdatasync(copy.get()) != 0) return base::system_error("fdatasync " + path);
  TRY(give_name(copy.get(), path));
  return copy;
}

base::Result<base::Fd> copy_of_pattern(const std::string& state_dir, DiskSize size) {
  const base::Fd pattern = TRY(pattern_for(state_dir, size));
  base::Fd image = TRY(nameless(folder_of(state_dir)));
  TRY(copy_pattern(pattern.get(), image.get(), size.bytes));
  return image;
}

// Those of this size from before the host started last.
void remove_old_spares(const std::string& state_dir, const std::string& current) {
  const std::string prefix =
      current.substr(0, current.rfind('.', current.size() - kSpare.size() - 1));
  const auto names = os::list_folder(folder_of(state_dir));
  if (!names) return;
  for (const auto& name : *names) {
    const std::string path = folder_of(state_dir) + "/" + name;
    if (path.starts_with(prefix) && path.ends_with(kSpare)) (void)::unlink(path.c_str());
  }
}

// Whose lock it is may take the spare: it stands for its name until the holder of the lock removes
// that, since a new one is only ever linked where there is none.
base::Result<base::Fd> take_spare(const std::string& state_dir, DiskSize size) {
  const std::string path = TRY(spare_path(state_dir, size));
  base::Fd image = TRY(os::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0));
  if (::flock(image.get(), LOCK_EX | LOCK_NB) != 0) return base::system_error("lock " + path);
  const struct stat status = TRY(os::fstat(image.get(), path));
  if (status.st_nlink != 1) return base::system_error(path, ENOENT);
  if (::unlink(path.c_str()) != 0) return base::system_error("unlink " + path);
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != size.bytes) {
    return base::bad_input(path, "not a disk of this size", "no such file");
  }
  return image;
}

}  // namespace

base::Result<base::Fd> take_image(Badge, const std::string& state_dir, DiskSize wanted) {
  TRY(os::own_folder(folder_of(state_dir)));
  const DiskSize size = rounded(wanted);
  auto spare = take_spare(state_dir, size);
  if (spare) return spare;
  return copy_of_pattern(state_dir, size);
}

base::Status fill_shelf(Badge, const std::string& state_dir, DiskSize wanted) {
  TRY(os::own_folder(folder_of(state_dir)));
  const DiskSize size = rounded(wanted);
  const std::string path = TRY(spare_path(state_dir, size));
  if (::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return {};
  remove_old_spares(state_dir, path);
  const base::Fd image = TRY(copy_of_pattern(state_dir, size));
  // Its way to the disk begins now, or else the loop device of the next start waits for it.
  TRY(os::start_writing(image.get(), path));
  return give_name(image.get(), path);
}

}  // namespace priv
