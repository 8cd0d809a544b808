// Images of a base: EROFS, made once for each state that it was in.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "host/machine.h"
#include "os/os.h"

namespace host {
namespace {

constexpr std::size_t kMostEntries = 2'000'000;
constexpr std::array<const char*, 2> kPackers = {"/usr/bin/mkfs.erofs", "/usr/sbin/mkfs.erofs"};
constexpr const char* kPackages = "/var/lib/dpkg/status";

// Packing by other rules gives other names.
constexpr std::string_view kRules = "2";

// Whether an ordinary user of the host may do nothing with it: such a file stays out of the image,
// which a guest whose kernel was taken over reads as it lies there, whatever the files' modes are.
bool is_closed(const struct stat& about) {
  return !S_ISLNK(about.st_mode) && (about.st_mode & (S_IROTH | S_IXOTH)) == 0;
}

// Everything below a folder, by name, with what tells that it was changed.
class Walk {
 public:
  base::Status add(const std::string& path, const std::string& shown) {
    const base::Fd here = TRY(os::open(path, O_PATH | O_NOFOLLOW, 0));
    const struct stat about = TRY(os::fstat(here.get(), path));
    text_ += fmt::format("{} {:o} {} {} {} {} {} {}\n", shown, about.st_mode, about.st_uid,
                         about.st_size, about.st_ino, about.st_ctim.tv_sec, about.st_ctim.tv_nsec,
                         about.st_mtim.tv_sec);
    if (++entries_ > kMostEntries) {
      return base::bad_input(path, "too many files", fmt::format("at most {}", kMostEntries));
    }
    const bool closed = !shown.empty() && is_closed(about);
    if (closed) closed_.push_back(shown.substr(1));
    if (closed || !S_ISDIR(about.st_mode)) return {};
    for (const auto& name : TRY(os::list_folder(path))) {
      TRY(add(path + "/" + name, shown + "/" + name));
    }
    return {};
  }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<std::string>& closed() const { return closed_; }

 private:
  std::string text_;
  std::vector<std::string> closed_;  // what is_closed(), without the slash at its front
  std::size_t entries_ = 0;
};

bool is_below(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

// What of a folder of the host is not wanted, without the slash at its front. A file that appears
// in a folder of which not all is wanted, between this and the packing, is an administrator's.
base::Status leave_out(const std::string& folder, const std::vector<std::string>& wanted,
                       std::vector<std::string>& excluded) {
  for (const auto& name : TRY(os::list_folder(folder.empty() ? "/" : folder))) {
    const std::string path = folder + "/" + name;
    const auto within = [&](const std::string& one) { return is_below(path, one); };
    const auto above = [&](const std::string& one) { return is_below(one, path); };
    if (std::ranges::any_of(wanted, within)) continue;
    if (os::path_kind(path) == os::PathKind::folder && std::ranges::any_of(wanted, above)) {
      TRY(leave_out(path, wanted, excluded));
    } else {
      excluded.push_back(path.substr(1));
    }
  }
  return {};
}

bool is_link(const std::string& path) {
  return os::path_kind(path) == os::PathKind::link;
}

// By the state of the package database.
base::Result<std::string> name_of_host() {
  const base::Fd about = TRY(os::open(kPackages, O_PATH, 0));
  const struct stat state = TRY(os::fstat(about.get(), kPackages));
  const std::string key = fmt::format("{} {} {} {}", kRules, state.st_size, state.st_mtim.tv_sec,
                                      state.st_mtim.tv_nsec);
  return "host-" + base::sha256(key).substr(0, 32) + ".erofs";
}

base::Result<std::string> images_folder(const std::string& state_dir) {
  TRY(os::make_folders(state_dir, 0700));
  std::string folder = state_dir + "/images";
  TRY(os::own_folder(folder));
  return folder;
}

// It appears whole or not at all.
base::Result<std::string> pack(const std::string& source, const std::string& folder,
                               const std::string& name, const std::vector<std::string>& excluded) {
  const auto packer = std::ranges::find_if(
      kPackers, [](const char* path) { return os::may_access(path, os::Access::read); });
  if (packer == kPackers.end()) {
    return base::fail(base::Kind::missing, "base image", "missing mkfs.erofs",
                      "apt-get install erofs-utils");
  }
  const std::string fresh = name + "." + base::random_base32(8);
  std::vector<std::string> argv = {*packer, "-T0", "-x-1", "--force-uid=0", "--force-gid=0"};
  for (const auto& path : excluded) argv.push_back("--exclude-path=" + path);
  argv.insert(argv.end(), {folder + "/" + fresh, source});
  auto child = TRY(os::spawn(argv, {}, {}));
  const int status = TRY(child.wait());
  const base::Fd dir = TRY(os::open(folder, O_RDONLY | O_DIRECTORY, 0));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    (void)os::remove_at(dir.get(), fresh);
    return base::fail(base::Kind::system, "base image", "mkfs.erofs failed for " + source,
                      "room for it in " + folder);
  }
  TRY(os::rename_at(dir.get(), fresh, name));
  return folder + "/" + name;
}

}  // namespace

base::Result<std::string> image_of_folder(const std::string& folder, const std::string& state_dir) {
  if (os::path_kind(folder + "/usr") != os::PathKind::folder) {
    return base::bad_input("filesystem.base", folder + " has no folder usr",
                           "a folder that holds the root of a system");
  }
  Walk walk;
  TRY_IN("filesystem.base", walk.add(folder, ""));
  const std::string images = TRY(images_folder(state_dir));
  const std::string key = fmt::format("{}\n{}", kRules, walk.text());
  const std::string name = "dir-" + base::sha256(key).substr(0, 32) + ".erofs";
  if (os::may_access(images + "/" + name, os::Access::read)) return images + "/" + name;
  return pack(folder, images, name, walk.closed());
}

base::Result<std::string> image_of_host(const std::string& state_dir) {
  const auto name = name_of_host();
  if (!name) return std::string();
  std::string path = state_dir + "/images/" + *name;
  if (!os::may_access(path, os::Access::read)) return std::string();
  return path;
}

base::Result<std::string> make_image_of_host(const plan::HostFacts& facts) {
  const std::string images = TRY(images_folder(facts.state_dir));
  const std::string name = TRY_IN("image warm host", name_of_host());
  if (os::may_access(images + "/" + name, os::Access::read)) return images + "/" + name;
  std::vector<std::string> wanted;
  for (const auto& [path, what] : facts.base) wanted.push_back(path);
  for (const auto& [path, source] : facts.etc_binds) wanted.push_back(source);
  std::vector<std::string> excluded;
  TRY(leave_out("", wanted, excluded));
  Walk walk;
  for (const auto& path : wanted) {
    if (!is_link(path)) TRY_IN("image warm host", walk.add(path, path));
  }
  excluded.insert(excluded.end(), walk.closed().begin(), walk.closed().end());
  return pack("/", images, name, excluded);
}

}  // namespace host
