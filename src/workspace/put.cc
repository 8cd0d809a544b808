// Copies files and folders of the host into a sandbox.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <algorithm>

#include "os/os.h"
#include "workspace/path.h"
#include "workspace/session.h"
#include "workspace/workspace.h"

namespace workspace {
namespace {

constexpr std::size_t kWindow = 16;  // puts that are sent before their answers are read
constexpr unsigned kModes = 0777;
constexpr std::size_t kMostUnsized = 16 << 20;  // of a file that does not say its size

class Putting {
 public:
  Putting(const Session& session, std::span<const std::string> hide, Manifest& manifest)
      : session_(session), hide_(hide), manifest_(manifest) {
    if (!session.what.empty()) where_ = session.what;
  }

  base::Status all(const Incoming& incoming) {
    const base::Fd fd = TRY(open_source(incoming.source));
    auto status = TRY(os::fstat(fd.get(), incoming.source));
    if (incoming.executable) status.st_mode |= S_IXUSR | S_IXGRP | S_IXOTH;
    TRY(make_parents(incoming.path));
    if (S_ISREG(status.st_mode)) {
      TRY(file(fd.get(), status, incoming.source, incoming.path));
    } else if (S_ISDIR(status.st_mode)) {
      base_name_ = split_last(incoming.path).second;
      TRY(folder(fd.get(), status, incoming.source, incoming.path, ""));
    } else {
      return special(incoming.source);
    }
    return answers(0);
  }

  base::Status bytes(const std::string& path, std::string_view content, std::uint32_t mode) {
    TRY(make_parents(path));
    TRY(whole_file(path, content, mode));
    return answers(0);
  }

  std::vector<std::string> take_hidden() { return std::move(hidden_); }

 private:
  base::Status whole_file(const std::string& path, std::string_view content, std::uint32_t mode) {
    TRY(claim(path, {frame::EntryKind::file, base::sha256(content), (mode & S_IXUSR) != 0}));
    TRY(send(session_, frame::PutFile{path, mode, content.size()}));
    while (!content.empty()) {
      const std::string_view part = content.substr(0, frame::kChunk);
      TRY(send(session_, frame::Data{std::string(part)}));
      content.remove_prefix(part.size());
    }
    return asked(path);
  }

  // The caller's own path may lead through links; what lies below it may not.
  [[nodiscard]] base::Result<base::Fd> open_source(const std::string& source) const {
    auto fd = os::open(source, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (fd) return fd;
    base::Error error = std::move(fd).error();
    if (error.number == ENXIO) return special(source);  // a socket, or a pipe that nobody writes
    error.kind = base::Kind::bad_input;
    error.where = where_ + " " + base::printable(source);
    return std::unexpected(std::move(error));
  }

  [[nodiscard]] std::unexpected<base::Error> special(const std::string& source) const {
    return base::bad_input(where_ + " " + base::printable(source), "is no file, folder or link",
                           "take it out of what is copied in");
  }

  base::Status make_parents(const std::string& path) {
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      const std::string parent = path.substr(0, at);
      const auto known = manifest_.find(parent);
      if (known != manifest_.end() && known->second.kind == frame::EntryKind::folder) continue;
      TRY(claim(parent, {frame::EntryKind::folder, "", false}));
      TRY(send(session_, frame::PutFolder{parent, 0755}));
      TRY(asked(parent));
    }
    return {};
  }

  base::Status folder(int fd, const struct stat& status, const std::string& source,
                      const std::string& path, const std::string& below) {
    TRY(in_bounds(source, path));
    TRY(claim(path, {frame::EntryKind::folder, "", false}));
    TRY(send(session_, frame::PutFolder{path, (status.st_mode & kModes) | S_IRWXU}));
    TRY(asked(path));
    if (hides(below)) {
      hidden_.push_back(source);
      return {};
    }
    for (const std::string& name : TRY(os::list_open_folder(fd))) {
      TRY(entry(fd, name, source + "/" + name, path + "/" + name,
                below.empty() ? name : below + "/" + name));
    }
    return {};
  }

  base::Status entry(int parent, const std::string& name, const std::string& source,
                     const std::string& path, const std::string& below) {
    TRY(in_bounds(source, path));
    const auto found = TRY_IN(base::printable(source), os::stat_at(parent, name));
    const bool hidden = hides(below);
    if (hidden && !S_ISDIR(found.st_mode)) {
      hidden_.push_back(source);
      return whole_file(path, "", found.st_mode & kModes);
    }
    if (S_ISLNK(found.st_mode)) return link(parent, name, path);
    if (!S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode)) return special(source);
    // What was looked at may have been swapped since: the open file is what counts.
    const base::Fd fd = TRY(os::openat2(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                                        0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
    const auto status = TRY(os::fstat(fd.get(), source));
    if (S_ISDIR(status.st_mode)) return folder(fd.get(), status, source, path, below);
    if (S_ISREG(status.st_mode)) return file(fd.get(), status, source, path);
    return special(source);
  }

  base::Status file(int fd, const struct stat& status, const std::string& source,
                    const std::string& path) {
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto mode = static_cast<std::uint32_t>(status.st_mode & kModes);
    // Files of /proc say that they are empty: what they hold shows by reading only.
    if (size == 0) {
      return whole_file(path, TRY_IN(where_, os::read_all(fd, kMostUnsized, source)), mode);
    }
    Known& known = *TRY(claim(path, {frame::EntryKind::file, "", (mode & S_IXUSR) != 0}));
    TRY(send(session_, frame::PutFile{path, mode, size}));
    Digest digest;
    for (std::uint64_t left = size; left > 0;) {
      const std::size_t want = std::min<std::uint64_t>(left, frame::kChunk);
      frame::Data data{TRY(os::read_some(fd, want, source))};
      if (data.bytes.empty()) {
        return base::bad_input(where_ + " " + base::printable(source), "shrank while it was copied",
                               {});
      }
      digest.add(data.bytes);
      left -= data.bytes.size();
      TRY(send(session_, std::move(data)));
    }
    known.content = digest.hex();
    return asked(path);
  }

  base::Status link(int parent, const std::string& name, const std::string& path) {
    std::string text = TRY(os::read_link_at(parent, name));
    TRY(claim(path, {frame::EntryKind::link, text, false}));
    TRY(send(session_, frame::PutLink{path, std::move(text)}));
    return asked(path);
  }

  [[nodiscard]] base::Status in_bounds(const std::string& source, const std::string& path) const {
    if (is_within_bounds(path)) return {};
    return base::bad_input(where_ + " " + base::printable(source),
                           "the path is too long or too deep",
                           "expected at most " + std::to_string(kMaxDepth) + " folders");
  }

  // Two things that come in at one path are an error before anything is sent.
  base::Result<Known*> claim(const std::string& path, Known known) {
    const auto [at, fresh] = manifest_.emplace(path, std::move(known));
    if (fresh) return &at->second;
    return base::bad_input(where_, "two things would be at `" + base::printable(path) + "` inside",
                           "give one of them another DEST");
  }

  [[nodiscard]] bool hides(const std::string& below) const {
    if (below.empty()) return false;
    const std::string under_base = "/" + base_name_ + "/" + below;
    return std::ranges::any_of(hide_, [&](const std::string& pattern) {
      return base::glob_matches(pattern, below) || base::glob_matches(pattern, under_base);
    });
  }

  // A put was sent whole; its answer is read now or a little later.
  base::Status asked(const std::string& path) {
    waiting_.push_back(path);
    return answers(kWindow - 1);
  }

  // Reads answers until at most `most` are outstanding.
  base::Status answers(std::size_t most) {
    while (waiting_.size() > most) {
      const auto answer = TRY(receive(session_));
      const std::string path = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
      if (std::holds_alternative<frame::Done>(answer)) continue;
      const auto* refused = std::get_if<frame::Refused>(&answer);
      if (refused == nullptr) return base::bad_input("files", "an answer that does not fit", {});
      base::Error error =
          base::system_error(where_ + ": put " + base::printable(path),
                             static_cast<int>(std::min<std::uint32_t>(refused->error, 4095)))
              .error();
      error.kind = base::Kind::missing;  // the place inside does not take it
      return std::unexpected(std::move(error));
    }
    return {};
  }

  const Session& session_;
  std::span<const std::string> hide_;
  Manifest& manifest_;
  std::string where_ = "--in";
  std::string base_name_;
  std::vector<std::string> waiting_;
  std::vector<std::string> hidden_;
};

}  // namespace

base::Result<std::vector<std::string>> put(const Session& session, const Incoming& incoming,
                                           std::span<const std::string> hide, Manifest& manifest) {
  Putting putting(session, hide, manifest);
  TRY(putting.all(incoming));
  return putting.take_hidden();
}

base::Status put_bytes(const Session& session, const std::string& path, std::string_view bytes,
                       std::uint32_t mode, Manifest& manifest) {
  return Putting(session, {}, manifest).bytes(path, bytes, mode);
}

}  // namespace workspace
