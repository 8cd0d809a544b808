// Finds what `filesystem.hide` names below folders of the host that are shown whole.
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "os/os.h"
#include "workspace/workspace.h"

namespace workspace {
namespace {

class Search {
 public:
  Search(std::span<const std::string> folders, std::span<const std::string> hide,
         std::uint64_t most)
      : folders_(folders), hide_(hide), most_(most) {}

  base::Status below(const std::string& top) {
    const base::Fd fd = TRY(os::open(top, O_PATH, 0));
    if (!S_ISDIR(TRY(os::fstat(fd.get(), top)).st_mode)) return {};  // named by itself: shown
    base_name_ = top.substr(top.rfind('/') + 1);
    std::vector<std::string> open = {""};
    while (!open.empty()) {
      const std::string path = std::move(open.back());
      open.pop_back();
      TRY(folder(fd.get(), top, path, open));
    }
    return {};
  }

  [[nodiscard]] std::vector<std::string> found() const { return {found_.begin(), found_.end()}; }

 private:
  // Reads one folder; those within it that are not hidden are added to `open`.
  base::Status folder(int top, const std::string& source, const std::string& path,
                      std::vector<std::string>& open) {
    const auto fd = os::openat2(top, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY, 0,
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (!fd && fd.error().number == ENOENT) return {};  // it went meanwhile
    if (!fd) return std::unexpected(base::Error(fd.error()).within("filesystem.hide"));
    for (const std::string& name : TRY_IN("filesystem.hide", os::list_open_folder(fd->get()))) {
      if (++seen_ > most_) return too_many();
      const std::string below = path.empty() ? name : path + "/" + name;
      const std::string whole = source + "/" + below;
      const auto status = os::stat_at(fd->get(), name);
      if (!status && status.error().number == ENOENT) continue;
      if (!status) return std::unexpected(base::Error(status.error()).within("filesystem.hide"));
      if (hides(below, whole)) {
        hide(whole, *status);
      } else if (S_ISDIR(status->st_mode)) {
        open.push_back(below);
      }
    }
    return {};
  }

  // Nothing can be put over a link: what it leads to is hidden, as far as that is shown.
  void hide(const std::string& path, const struct stat& status) {
    if (!S_ISLNK(status.st_mode)) {
      found_.insert(path);
      return;
    }
    const auto real = os::real_path(path);
    if (!real) return;
    const bool shown = std::ranges::any_of(folders_, [&](const auto& folder) {
      return *real != folder && base::is_within(*real, folder);
    });
    if (shown) found_.insert(*real);
  }

  [[nodiscard]] bool hides(const std::string& below, const std::string& whole) const {
    if (std::ranges::find(folders_, whole) != folders_.end()) return false;
    const std::string under_base = "/" + base_name_ + "/" + below;
    return std::ranges::any_of(hide_, [&](const std::string& pattern) {
      return base::glob_matches(pattern, below) || base::glob_matches(pattern, under_base) ||
             base::glob_matches(pattern, whole);
    });
  }

  [[nodiscard]] std::unexpected<base::Error> too_many() const {
    return base::bad_input(
        "filesystem.hide",
        fmt::format("more than {} files and folders lie below filesystem.read_only and --ro",
                    most_),
        "expected narrower folders, or hide = [] where none of them holds a secret");
  }

  std::span<const std::string> folders_;
  std::span<const std::string> hide_;
  std::uint64_t most_;
  std::uint64_t seen_ = 0;
  std::string base_name_;
  std::set<std::string> found_;
};

}  // namespace

base::Result<std::vector<std::string>> hidden_below(std::span<const std::string> folders,
                                                    std::span<const std::string> hide,
                                                    std::uint64_t most) {
  Search search(folders, hide, most);
  if (hide.empty()) return search.found();
  for (const std::string& folder : folders) TRY(search.below(folder));
  return search.found();
}

}  // namespace workspace
