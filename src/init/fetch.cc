// Sends a tree to the host: any depth, any number of names, with a bounded number of descriptors.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "init/session.h"

namespace init {
namespace {

constexpr std::size_t kMostPath = 64UL * 1024;  // so that an entry fits a frame
constexpr std::size_t kMostOpen = 32;           // folders on the way down
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
// A fifo must not block the session, nor a lease that another process holds (EAGAIN then).
constexpr int kFile = O_RDONLY | O_NONBLOCK | O_NOCTTY;

// A folder on the way from the root to where the walk is.
struct Level {
  base::Fd folder;                      // may be closed again where the way is long
  std::size_t path_size = 0;            // of the walk's path up to this folder
  std::vector<std::string> subfolders;  // still to be visited
};

class Walk {
 public:
  Walk(const Peer& peer, int root) : peer_(peer), root_(root) {}

  // All of `path`; false when the peer is gone.
  bool send(const std::string& path) {
    path_ = path;
    auto folder = open_below(root_, path, kFolder, 0);
    if (!folder) return path.empty() ? leave_out("", folder.error()), true : send_single(path);
    if (!path.empty() && !send_folder(folder->get())) return false;
    if (!enter(std::move(*folder))) return false;
    while (!levels_.empty()) {
      if (!next()) return false;
    }
    return true;
  }

  [[nodiscard]] bool conclude() const {
    if (left_out_ == 0) return peer_.say(frame::Done{});
    std::string what = first_;
    if (left_out_ > 1) what += " (and " + std::to_string(left_out_ - 1) + " more)";
    return peer_.say(frame::Refused{what, static_cast<std::uint32_t>(first_error_)});
  }

 private:
  // Something that is no folder, asked for by its own path.
  bool send_single(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    auto folder = open_below(root_, parent, O_PATH | O_DIRECTORY, 0);
    if (!folder) {
      leave_out(path, folder.error());
      return true;
    }
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    path_ = parent;
    std::vector<std::string> none;
    return send_name(folder->get(), name, none);
  }

  // Reads the folder at path_: everything but folders is sent at once, so that no list of a million
  // names is held.
  bool enter(base::Fd folder) {
    Level level{std::move(folder), path_.size(), {}};
    alignas(dirent64) char buffer[32 * 1024];
    while (true) {
      const long got = ::syscall(SYS_getdents64, level.folder.get(), buffer, sizeof buffer);
      if (got < 0) leave_out(path_, {"read folder", errno});
      if (got <= 0) break;
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
        at += entry->d_reclen;
        const std::string name = entry->d_name;
        if (name == "." || name == "..") continue;
        if (!send_name(level.folder.get(), name, level.subfolders)) return false;
      }
    }
    levels_.push_back(std::move(level));
    if (levels_.size() > kMostOpen) levels_[levels_.size() - 1 - kMostOpen].folder.reset();
    return true;
  }

  // One more subfolder of the deepest level, or one level up.
  bool next() {
    Level& level = levels_.back();
    path_.resize(level.path_size);
    if (level.subfolders.empty()) {
      levels_.pop_back();
      return true;
    }
    const std::string name = std::move(level.subfolders.back());
    level.subfolders.pop_back();
    if (!level.folder.open()) {
      auto again = open_below(root_, path_, kFolder, 0);
      if (!again) {
        leave_out(joined(name), again.error());
        return true;
      }
      level.folder = std::move(*again);
    }
    auto folder = open_below(level.folder.get(), name, kFolder, 0);
    if (!folder) {
      // Closed to the user, say: it is named, but not what is in it.
      const bool heard = send_closed_folder(level.folder.get(), name);
      leave_out(joined(name), folder.error());
      return heard;
    }
    path_ = joined(name);
    return send_folder(folder->get()) && enter(std::move(*folder));
  }

  bool send_name(int folder, const std::string& name, std::vector<std::string>& subfolders) {
    const std::string path = joined(name);
    if (path.size() > kMostPath) {
      leave_out(path.substr(0, 64) + "…", {"path", ENAMETOOLONG});
      return true;
    }
    struct stat about = {};
    // Nothing is mounted on the way: fstatat(2) never does, and gVisor's knows no flag that says
    // so.
    if (::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
      // Gone since it was listed: as if it had never been.
      if (errno != ENOENT) leave_out(path, {"stat", errno});
      return true;
    }
    if (S_ISDIR(about.st_mode)) {
      subfolders.push_back(name);
      return true;
    }
    if (S_ISREG(about.st_mode)) return send_file(folder, name, path);
    if (S_ISLNK(about.st_mode)) return send_link(folder, name, path);
    return peer_.say(frame::Entry{path, frame::EntryKind::other, about.st_mode & 07777, 0, {}});
  }

  bool send_folder(int folder) {
    struct stat about = {};
    if (::fstat(folder, &about) != 0) about.st_mode = 0700;
    return peer_.say(frame::Entry{path_, frame::EntryKind::folder, about.st_mode & 07777, 0, {}});
  }

  bool send_closed_folder(int parent, const std::string& name) {
    struct stat about = {};
    if (::fstatat(parent, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(about.st_mode))
      return true;
    return peer_.say(
        frame::Entry{joined(name), frame::EntryKind::folder, about.st_mode & 07777, 0, {}});
  }

  bool send_link(int folder, const std::string& name, const std::string& path) {
    std::string text(4096, '\0');
    const ssize_t size = ::readlinkat(folder, name.c_str(), text.data(), text.size());
    if (size < 0) {
      leave_out(path, {"readlink", errno});
      return true;
    }
    text.resize(static_cast<std::size_t>(size));
    return peer_.say(frame::Entry{path, frame::EntryKind::link, 0777, 0, text});
  }

  bool send_file(int folder, const std::string& name, const std::string& path) {
    const auto file = open_below(folder, name, kFile, 0);
    if (!file) {
      leave_out(path, file.error());
      return true;
    }
    struct stat about = {};
    if (::fstat(file->get(), &about) != 0 || !S_ISREG(about.st_mode)) {
      leave_out(path, {"open", EAGAIN});  // exchanged between the look and the open
      return true;
    }
    const auto size = static_cast<std::uint64_t>(about.st_size);
    if (is_larger_than_disk(file->get(), size)) {
      leave_out(path, {"size", EFBIG});
      return peer_.say(
          frame::Entry{path, frame::EntryKind::other, about.st_mode & 07777, size, {}});
    }
    return peer_.say(frame::Entry{path, frame::EntryKind::file, about.st_mode & 07777, size, {}}) &&
           send_data(file->get(), size, path);
  }

  // A file of holes can be of any size and costs the workload nothing; the host would have to take
  // every zero.
  static bool is_larger_than_disk(int file, std::uint64_t size) {
    struct statfs disk = {};
    if (::fstatfs(file, &disk) != 0) return true;
    const auto blocks = static_cast<std::uint64_t>(disk.f_blocks);
    return blocks != 0 && size / static_cast<std::uint64_t>(disk.f_bsize) > blocks;
  }

  // Exactly `size` bytes, whatever happens to the file meanwhile: what is missing is sent as zeros
  // and said at the end, what was added is not sent.
  bool send_data(int file, std::uint64_t size, const std::string& path) {
    bool whole = true;
    for (std::uint64_t at = 0; at < size;) {
      frame::Data data;
      data.bytes.resize(std::min<std::uint64_t>(frame::kChunk, size - at));
      ssize_t got =
          whole ? ::pread(file, data.bytes.data(), data.bytes.size(), static_cast<off_t>(at)) : 0;
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        if (whole)
          leave_out(path,
                    got < 0 ? confine::Failure{"read", errno} : confine::Failure{"shrank", EIO});
        whole = false;
        got = static_cast<ssize_t>(data.bytes.size());
      }
      data.bytes.resize(static_cast<std::size_t>(got));
      if (!peer_.say(data)) return false;
      at += static_cast<std::uint64_t>(got);
    }
    return true;
  }

  [[nodiscard]] std::string joined(const std::string& name) const {
    return path_.empty() ? name : path_ + "/" + name;
  }
  void leave_out(const std::string& path, const confine::Failure& failure) {
    if (left_out_++ > 0) return;
    first_ = (path.empty() ? "." : path) + ": " + failure.step;
    first_error_ = failure.number;
  }

  const Peer& peer_;
  int root_;
  std::string path_;  // of the deepest level, relative to the root
  std::vector<Level> levels_;
  std::uint64_t left_out_ = 0;
  std::string first_;
  int first_error_ = 0;
};

}  // namespace

bool fetch(const Peer& peer, int root, const std::string& path) {
  if (!path.empty() && !is_plain(path)) return peer.say(frame::Refused{"path", EINVAL});
  Walk walk(peer, root);
  return walk.send(path) && walk.conclude();
}

}  // namespace init
