// Brings files out of a sandbox; every frame that comes is taken for hostile.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "os/move.h"
#include "os/os.h"
#include "os/sparse.h"
#include "workspace/path.h"
#include "workspace/session.h"
#include "workspace/workspace.h"

namespace workspace {
namespace {

constexpr unsigned kModes = 0777;  // set-id and sticky bits stay inside
constexpr std::size_t kNamesKept = 8;
// What comes out within Session::pace_ms even of an emulated guest.
constexpr std::uint64_t kEntriesAPiece = 64;
constexpr std::uint64_t kBytesAPiece = 256U << 10;

// A file below the folder that is being written under a name of its own; gone at its end unless it
// was kept.
class NewFile {
 public:
  NewFile(int parent, std::string name, base::Fd fd)
      : parent_(parent), name_(std::move(name)), fd_(std::move(fd)) {}
  NewFile(NewFile&& other) noexcept
      : parent_(other.parent_), name_(std::exchange(other.name_, "")), fd_(std::move(other.fd_)) {}
  NewFile& operator=(NewFile&&) = delete;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!name_.empty()) (void)os::remove_at(parent_, name_);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  // Puts it in the place of what stands at `name` in `folder`; a folder there is EISDIR.
  base::Status keep_as(int folder, const std::string& name) {
    TRY(os::move_between(parent_, name_, folder, name));
    name_.clear();
    return {};
  }

 private:
  int parent_;
  std::string name_;
  base::Fd fd_;
};

// What the host has at one name and will not give up: a folder, a mount point, a file that is kept
// from change. The other entries can still come out.
bool is_clash(int error) {
  return error == EISDIR || error == ENOTEMPTY || error == EEXIST || error == EBUSY ||
         error == EPERM || error == EACCES;
}

std::string fresh_name() {
  return ".cerco-" + base::random_base32(16);
}

class Taking {
 public:
  Taking(const Session& session, int dir, const Manifest& manifest, const Caps& caps)
      : session_(session), dir_(dir), manifest_(manifest), caps_(caps) {
    if (!session.what.empty()) where_ = session.what;
  }

  base::Result<Taken> one(const std::string& path, const std::string& as) {
    from_ = path;
    as_ = as;
    return all();
  }

  base::Result<Taken> all() {
    TRY(send(session_, frame::Fetch{from_}));
    while (true) {
      auto came = TRY(next());
      if (std::holds_alternative<frame::Done>(came)) break;
      if (const auto* refused = std::get_if<frame::Refused>(&came)) {
        TRY(partly(*refused));
        break;
      }
      auto* entry = std::get_if<frame::Entry>(&came);
      if (entry == nullptr || !rename(entry->path)) return malformed("a frame that does not fit");
      TRY(take(*entry));
    }
    if (!from_.empty() && entries_ == 0) {
      return base::bad_input(where_, "nothing is at `" + base::printable(from_) + "` inside", {});
    }
    for (const auto& [path, known] : manifest_) taken_.changes += seen_.contains(path) ? 0 : 1;
    return std::move(taken_);
  }

 private:
  // Whoever sends a byte now and then is never silent, and would keep the sandbox for ever.
  base::Result<frame::FileFrame> next() {
    if (session_.stall_ms >= 0) {
      const std::uint64_t pieces = 1 + entries_ / kEntriesAPiece + came_ / kBytesAPiece;
      const auto patience = std::chrono::milliseconds(session_.stall_ms) +
                            pieces * std::chrono::milliseconds(session_.pace_ms);
      if (std::chrono::steady_clock::now() - began_ > patience) {
        return base::fail(base::Kind::peer, where_, "the sandbox hands its files out too slowly",
                          {});
      }
    }
    return receive(session_);
  }

  // What was asked for by one name gets the other; false for what was not asked for.
  bool rename(std::string& path) const {
    if (from_.empty()) return true;
    if (path != from_ && !path.starts_with(from_ + "/")) return false;
    path = as_ + path.substr(from_.size());
    return true;
  }

  // A link stays within what is copied; the one thing that was asked for is no link.
  [[nodiscard]] bool link_stays(const frame::Entry& entry) const {
    if (from_.empty()) return link_stays_inside(entry.path, entry.text);
    return entry.path.size() > as_.size() &&
           link_stays_inside(entry.path.substr(as_.size() + 1), entry.text);
  }

  [[nodiscard]] std::unexpected<base::Error> malformed(std::string what) const {
    return base::fail(base::Kind::peer, where_, std::move(what) + " from the sandbox", {});
  }

  // All that can be read has come; what cannot be is named. Before any entry it means that nothing
  // can.
  base::Status partly(const frame::Refused& refused) {
    const int number = static_cast<int>(std::min<std::uint32_t>(refused.error, 4095));
    const auto error = base::system_error(base::printable(refused.what.substr(0, 300)), number);
    if (entries_ == 0) return std::unexpected(base::Error(error.error()).within(where_));
    ++taken_.left_out_count;
    taken_.left_out.insert(taken_.left_out.begin(), error.error().line());
    return {};
  }

  base::Status take(const frame::Entry& entry) {
    if (++entries_ > caps_.entries) {
      return base::fail(base::Kind::peer, where_,
                        "more than " + std::to_string(caps_.entries) + " files and folders",
                        "raise limits.inodes");
    }
    if (!is_clean(entry.path)) {
      return malformed("the path `" + base::printable(entry.path.substr(0, 200)) + "`");
    }
    const auto known = manifest_.find(entry.path);
    if (known != manifest_.end()) seen_.insert(entry.path);
    bool fits = is_within_bounds(entry.path);
    if (!fits) left_out(entry.path, "the path is too long or too deep");
    if (fits && below_clash(entry.path)) {
      left_out(entry.path, "its folder was not brought out");
      fits = false;
    }
    switch (entry.kind) {
      case frame::EntryKind::file:
        return fits ? file(entry) : drop(entry.size);
      case frame::EntryKind::folder:
        return fits ? folder(entry) : base::Status();
      case frame::EntryKind::link:
        return fits ? link(entry) : base::Status();
      case frame::EntryKind::other:
        if (fits) left_out(entry.path, "is no file, folder or link");
        return {};
    }
    return malformed("an unknown kind of entry");
  }

  // What was put in is written beside the tree until it is known to have changed, so that an
  // unchanged file makes no folder; what is new is written where it will stand.
  base::Status file(const frame::Entry& entry) {
    const auto [folder_path, name] = split_last(entry.path);
    const bool known = manifest_.contains(entry.path);
    base::Fd parent = TRY(known ? open_below("") : open_parent(entry.path));
    const std::string temporary = fresh_name();
    NewFile file(parent.get(), temporary,
                 TRY(os::openat2(parent.get(), temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                 entry.mode & kModes, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)));
    const std::string shown = base::printable(entry.path);
    Digest digest;
    os::SparseWriter writer(file.fd());
    TRY(content(entry.size, [&](std::string_view bytes) -> base::Status {
      digest.add(bytes);
      return writer.write(bytes, shown);
    }));
    TRY(writer.end(shown));
    const Known now = {frame::EntryKind::file, digest.hex(), (entry.mode & S_IXUSR) != 0};
    if (!changed(entry.path, now)) return {};
    if (!known) return unless_clash(file.keep_as(parent.get(), name), entry.path);
    const base::Fd folder = TRY(open_parent(entry.path));
    return unless_clash(file.keep_as(folder.get(), name), entry.path);
  }

  // The `size` bytes of a file, piece by piece; nothing more and nothing less.
  template <class Sink>
  base::Status content(std::uint64_t size, Sink sink) {
    if (size > caps_.bytes - bytes_) {
      return base::fail(base::Kind::peer, where_,
                        "more than " + std::to_string(caps_.bytes) + " bytes, holes included",
                        "raise limits.disk");
    }
    bytes_ += size;
    while (size > 0) {
      const auto came = TRY(next());
      const auto* data = std::get_if<frame::Data>(&came);
      if (data == nullptr || data->bytes.empty() || data->bytes.size() > size) {
        return malformed("a file that is not as long as it was said to be");
      }
      size -= data->bytes.size();
      came_ += data->bytes.size();
      TRY(sink(data->bytes));
    }
    return {};
  }

  base::Status drop(std::uint64_t size) {
    return content(size, [](std::string_view) -> base::Status { return {}; });
  }

  // A folder that was put in is made only when something in it has to come out.
  base::Status folder(const frame::Entry& entry) {
    if (!changed(entry.path, {frame::EntryKind::folder, "", false})) {
      unmade_.emplace(entry.path, entry.mode);
      return {};
    }
    const base::Fd parent = TRY(open_parent(entry.path));
    auto made = make_folder(parent.get(), split_last(entry.path).second, entry.mode);
    if (!made && is_clash(made.error().number)) clashes_.insert(entry.path);
    return unless_clash(std::move(made), entry.path);
  }

  // Leaves the entry out, by name, when the host does not give its place up.
  base::Status unless_clash(base::Status done, const std::string& path) {
    if (done || !is_clash(done.error().number)) return done;
    --taken_.changes;
    left_out(path, std::string("the host keeps what it has there: ") +
                       strerrorname_np(done.error().number));
    return {};
  }

  [[nodiscard]] bool below_clash(const std::string& path) const {
    return std::ranges::any_of(clashes_, [&](const std::string& folder) {
      return path != folder && base::is_within(path, folder);
    });
  }

  static base::Status make_folder(int parent, const std::string& name, std::uint32_t mode) {
    const auto there = os::stat_at(parent, name);
    if (there && S_ISDIR(there->st_mode)) return {};
    if (there) TRY(os::remove_at(parent, name));
    return os::make_folder_at(parent, name, (mode & kModes) | S_IRWXU);
  }

  base::Status link(const frame::Entry& entry) {
    if (!link_stays(entry)) {
      left_out(entry.path, "a link that points out of the folder");
      return {};
    }
    if (!changed(entry.path, {frame::EntryKind::link, entry.text, false})) return {};
    const base::Fd parent = TRY(open_parent(entry.path));
    const std::string temporary = fresh_name();
    TRY(os::make_link_at(parent.get(), temporary, entry.text));
    NewFile made(parent.get(), temporary, base::Fd());
    return unless_clash(made.keep_as(parent.get(), split_last(entry.path).second), entry.path);
  }

  // The folder that an entry stands in; those above it that were put in are made now.
  base::Result<base::Fd> open_parent(const std::string& path) {
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      const auto unmade = unmade_.find(path.substr(0, at));
      if (unmade == unmade_.end()) continue;
      const auto [above, name] = split_last(unmade->first);
      const base::Fd parent = TRY(open_below(above));
      TRY(make_folder(parent.get(), name, unmade->second));
      unmade_.erase(unmade);
    }
    return open_below(split_last(path).first);
  }

  // By descriptor from the folder down, through real folders only.
  base::Result<base::Fd> open_below(const std::string& path) {
    auto fd = os::openat2(dir_, path.empty() ? "." : path, O_PATH | O_DIRECTORY, 0,
                          RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    if (fd) return fd;
    return std::unexpected(std::move(fd).error().within(where_));
  }

  // Whether it is not what was put in; counted if so.
  bool changed(const std::string& path, const Known& now) {
    const auto known = manifest_.find(path);
    if (known != manifest_.end() && known->second == now) return false;
    ++taken_.changes;
    return true;
  }

  void left_out(const std::string& path, std::string_view why) {
    ++taken_.left_out_count;
    if (taken_.left_out.size() < kNamesKept) {
      taken_.left_out.push_back(path.substr(0, 200) + ": " + std::string(why));
    }
  }

  const Session& session_;
  int dir_;
  const Manifest& manifest_;
  const Caps& caps_;
  std::string where_ = "--out";
  std::string from_;  // "": everything
  std::string as_;
  std::set<std::string> seen_;
  std::set<std::string> clashes_;  // folders that could not be made where something else stands
  std::map<std::string, std::uint32_t> unmade_;  // folders that were put in, with their modes
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;  // that were said to come
  std::uint64_t came_ = 0;   // that came
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  Taken taken_;
};

}  // namespace

base::Result<Taken> take(const Session& session, int dir, const Manifest& manifest,
                         const Caps& caps) {
  return Taking(session, dir, manifest, caps).all();
}

base::Result<Taken> take_one(const Session& session, const std::string& path, int dir,
                             const std::string& as, const Caps& caps) {
  if (!is_clean(path) || !is_clean(as) || as.find('/') != std::string::npos) {
    return base::bad_input(base::printable(path), "is no name of a file or folder", {});
  }
  const Manifest nothing;
  return Taking(session, dir, nothing, caps).one(path, as);
}

}  // namespace workspace
