// A file session: what is put, and who serves it.
#include "init/session.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "init/init.h"
#include "os/files.h"
#include "os/socket.h"
#include "os/sparse.h"

namespace init {
namespace {

constexpr std::uint64_t kResolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr std::size_t kMostName = 255;
constexpr std::size_t kMostAtOnce = 4000;  // below PATH_MAX

std::unexpected<confine::Failure> failed(const char* step, int number) {
  return std::unexpected(confine::Failure{step, number});
}

// Below gVisor's kernel there is no openat2: a folder at a time then, none of them a link, which is
// the same for paths without "..".
base::Result<base::Fd> walk(int dir, std::string_view path, int flags, unsigned mode) {
  base::Fd reached;
  while (true) {
    const std::size_t slash = path.find('/');
    const bool last = slash == std::string_view::npos;
    const std::string name(path.substr(0, slash));
    const int how = last ? flags : O_PATH | O_DIRECTORY;
    base::Fd next(::openat(reached.open() ? reached.get() : dir, name.c_str(),
                           how | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!next.open()) return base::system_error("open");
    if (last) return next;
    reached = std::move(next);
    path.remove_prefix(slash + 1);
  }
}

// `path` has plain names only, or is "."; `resolve` is for openat2(2).
base::Result<base::Fd> open_plain(int dir, const std::string& path, int flags, unsigned mode,
                                  std::uint64_t resolve) {
  auto opened = os::openat2(dir, path, flags, mode, resolve);
  if (opened || opened.error().number != ENOSYS) return opened;
  return walk(dir, path, flags, mode);
}

// The folder of a session, by an absolute path.
base::Result<base::Fd> open_root(const std::string& path) {
  auto opened = os::openat2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0,
                            RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (opened || opened.error().number != ENOSYS) return opened;
  if (!path.starts_with('/') || (path != "/" && !is_plain(std::string_view(path).substr(1)))) {
    return base::system_error("open", EINVAL);
  }
  const base::Fd top(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  return walk(top.get(), path == "/" ? "." : std::string_view(path).substr(1), O_PATH | O_DIRECTORY,
              0);
}

// The folder that `path` lies in, and its last name.
struct Place {
  base::Fd folder;
  std::string name;
};
std::expected<Place, confine::Failure> place(int root, const std::string& path) {
  if (!is_plain(path)) return failed("path", EINVAL);
  const std::size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
  auto folder = open_below(root, parent, O_PATH | O_DIRECTORY, 0);
  if (!folder) return std::unexpected(folder.error());
  return Place{std::move(*folder), slash == std::string::npos ? path : path.substr(slash + 1)};
}

using frame::Existing;

confine::Outcome put_folder(int root, const frame::PutFolder& put, Existing existing) {
  const auto at = place(root, put.path);
  if (!at) return std::unexpected(at.error());
  if (::mkdirat(at->folder.get(), at->name.c_str(), put.mode & 0777) == 0) return {};
  const int number = errno;
  const bool stays = number == EEXIST && existing == Existing::replace &&
                     open_below(at->folder.get(), at->name, O_PATH | O_DIRECTORY, 0);
  return stays ? confine::Outcome() : failed("mkdir", number);
}

// What is no folder goes; a folder is an error of whoever makes something in its place (EEXIST).
confine::Outcome make_room(const Place& at, Existing existing) {
  if (existing != Existing::replace) return {};
  if (::unlinkat(at.folder.get(), at.name.c_str(), 0) == 0) return {};
  if (errno == ENOENT || errno == EISDIR) return {};
  return failed("unlink", errno);
}

confine::Outcome put_link(int root, const frame::PutLink& put, Existing existing) {
  const auto at = place(root, put.path);
  if (!at) return std::unexpected(at.error());
  if (const auto made = make_room(*at, existing); !made) return made;
  if (::symlinkat(put.text.c_str(), at->folder.get(), at->name.c_str()) != 0)
    return failed("symlink", errno);
  return {};
}

// A file on its way in. After the first failure the rest of its data is read and dropped.
class Incoming {
 public:
  Incoming(int root, const frame::PutFile& put, Existing existing) : left_(put.size) {
    auto at = place(root, put.path);
    if (!at) {
      outcome_ = std::unexpected(at.error());
      return;
    }
    place_ = std::move(*at);
    outcome_ = make_room(place_, existing);
    if (!outcome_) return;
    auto opened =
        open_below(place_.folder.get(), place_.name, O_WRONLY | O_CREAT | O_EXCL, put.mode & 0777);
    if (!opened) {
      outcome_ = std::unexpected(opened.error());
      return;
    }
    file_ = std::move(*opened);
    writer_ = os::SparseWriter(file_.get());
  }
  [[nodiscard]] bool whole() const { return left_ == 0; }
  // Closes the file, so that it can be executed once its arrival is answered (ETXTBSY else).
  [[nodiscard]] confine::Outcome close() {
    if (outcome_) note(writer_.end("file"));
    file_.reset();
    return outcome_;
  }
  // False for more bytes than were announced.
  bool take(const std::string& bytes) {
    if (bytes.size() > left_) return false;
    left_ -= bytes.size();
    if (!outcome_) return true;
    note(writer_.write(bytes, "file"));
    return true;
  }

 private:
  // What could not be written whole is not left.
  void note(const base::Status& written) {
    if (written) return;
    outcome_ = failed("write", written.error().number);
    (void)::unlinkat(place_.folder.get(), place_.name.c_str(), 0);
  }

  std::uint64_t left_;
  Place place_;
  base::Fd file_;
  os::SparseWriter writer_ = os::SparseWriter(-1);
  confine::Outcome outcome_;
};

class Session {
 public:
  Session(int socket, int root, Existing existing)
      : peer_(socket), root_(root), existing_(existing) {}
  // False at its end.
  bool turn() {
    const auto word = peer_.hear();
    return word && std::visit([this](const auto& held) { return obey(held); }, *word);
  }

 private:
  bool answer(const confine::Outcome& outcome, const std::string& path) {
    if (outcome) return peer_.say(frame::Done{});
    return peer_.say(frame::Refused{path + ": " + outcome.error().step,
                                    static_cast<std::uint32_t>(outcome.error().number)});
  }
  bool obey(const frame::PutFolder& put) {
    return answer(put_folder(root_, put, existing_), put.path);
  }
  bool obey(const frame::PutLink& put) { return answer(put_link(root_, put, existing_), put.path); }
  bool obey(const frame::PutFile& put) {
    Incoming incoming(root_, put, existing_);
    while (!incoming.whole()) {
      const auto word = peer_.hear();
      const auto* data = word ? std::get_if<frame::Data>(&*word) : nullptr;
      if (data == nullptr || !incoming.take(data->bytes)) return false;
    }
    return answer(incoming.close(), put.path);
  }
  bool obey(const frame::Fetch& want) { return fetch(peer_, root_, want.path); }
  // The host has no reason to say any of these.
  bool obey(const frame::Data&) { return false; }
  bool obey(const frame::Entry&) { return false; }
  bool obey(const frame::Done&) { return false; }
  bool obey(const frame::Refused&) { return false; }

  Peer peer_;
  int root_;
  Existing existing_;
};

// In the child. Nothing of init but the socket stays open.
int become_session(const frame::ServeFiles& serve, int socket) {
  constexpr int kSocket = 3;
  if (::setsid() < 0 || ::dup2(socket, kSocket) < 0 || !confine::close_from(kSocket + 1)) return 1;
  const Peer peer(kSocket);
  const auto refuse = [&](const confine::Failure& failure) {
    (void)peer.say(frame::Refused{failure.step, static_cast<std::uint32_t>(failure.number)});
    return 1;
  };
  if (const auto done = give_up_all(serve.uid, serve.gid); !done) return refuse(done.error());
  // As the workload's user, and before the filter: from here on paths are below this folder only.
  auto root = open_root(serve.root);
  if (!root) return refuse({"open root", root.error().number});
  if (const auto done = confine::install(confine::filter(confine::Own::files)); !done) {
    return refuse(done.error());
  }
  return serve_files(kSocket, root->get(), serve.existing);
}

}  // namespace

confine::Outcome give_up_all(std::uint32_t uid, std::uint32_t gid) {
  if (const auto done = confine::drop_bounding(); !done) return done;
  if (const auto done = confine::become(uid, gid); !done) return done;
  if (const auto done = confine::keep_capabilities(confine::kNone); !done) return done;
  if (const auto done = confine::not_dumpable(); !done) return done;
  return confine::no_new_privs();
}

std::optional<frame::FileFrame> Peer::hear() {
  buffer_.resize(frame::kMaxFrame);
  ssize_t got = -1;
  do {
    got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0 || static_cast<std::size_t>(got) > buffer_.size()) return std::nullopt;
  auto word =
      base::decode<frame::FileFrame>(std::string_view(buffer_).substr(0, got), "file frame");
  if (!word) return std::nullopt;
  return std::move(*word);
}

bool Peer::say(const frame::FileFrame& word) const {
  return os::send_message(socket_, base::encode(word), {}).has_value();
}

bool is_plain(std::string_view path) {
  if (path.contains('\0')) return false;
  for (const std::string_view name : base::split(path, '/')) {
    if (name.empty() || name == "." || name == ".." || name.size() > kMostName) return false;
  }
  return true;
}

std::expected<base::Fd, confine::Failure> open_below(int dir, std::string_view path, int flags,
                                                     unsigned mode) {
  base::Fd reached;
  const auto from = [&] { return reached.open() ? reached.get() : dir; };
  while (path.size() > kMostAtOnce) {
    const std::size_t slash = path.rfind('/', kMostAtOnce);
    if (slash == std::string_view::npos) return failed("open", ENAMETOOLONG);
    auto next =
        open_plain(from(), std::string(path.substr(0, slash)), O_PATH | O_DIRECTORY, 0, kResolve);
    if (!next) return failed("open", next.error().number);
    reached = std::move(*next);
    path.remove_prefix(slash + 1);
  }
  auto last = open_plain(from(), path.empty() ? "." : std::string(path), flags, mode, kResolve);
  if (!last) return failed("open", last.error().number);
  return std::move(*last);
}

int serve_files(int socket, int root, frame::Existing existing) {
  ::umask(0);  // modes are what the host says
  Session session(socket, root, existing);
  while (session.turn()) {
  }
  return 0;
}

pid_t begin_session(const frame::ServeFiles& serve, int socket) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(become_session(serve, socket));
  if (pid < 0) (void)Peer(socket).say(frame::Refused{"fork", static_cast<std::uint32_t>(errno)});
  return pid;
}

}  // namespace init
