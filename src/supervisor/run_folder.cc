// The folder of a living run.
#include "supervisor/run_folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/os.h"
#include "supervisor/run_report.h"

namespace supervisor {

namespace {

constexpr const char* kNewFile = "live.new";
constexpr std::size_t kMostLive = std::size_t{1} << 20;
constexpr int kBacklog = 64;
constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

std::string folder_path(const std::string& state_dir, const std::string& run) {
  return state_dir + "/runs/" + run;
}

base::Result<base::Fd> open_folder(const std::string& state_dir, const std::string& run) {
  return os::open(folder_path(state_dir, run), O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

// By descriptor, since the path of a state folder may be longer than the 107 bytes of an address.
sockaddr_un address_in(int folder) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + kSocketFile;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

std::unexpected<base::Error> no_such_run(const std::string& run) {
  return base::fail(base::Kind::not_found, run, "the run has ended", "cerco ps -a lists all");
}

// The opened file and whether a supervisor holds it.
struct Opened {
  base::Fd file;
  bool alive = false;
};
base::Result<Opened> open_live(int folder, const std::string& run) {
  auto file =
      os::openat2(folder, kLiveFile, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0, kBeneath);
  if (!file && file.error().number == ENOENT) return no_such_run(run);
  if (!file) return std::unexpected(file.error());
  if (!S_ISREG(TRY(os::fstat(file->get(), kLiveFile)).st_mode)) {
    return base::bad_input(run, "its file `live` is no file", {});
  }
  const bool alive = ::flock(file->get(), LOCK_SH | LOCK_NB) != 0;
  return Opened{std::move(*file), alive};
}

}  // namespace

base::Result<RunFolder> RunFolder::make(const std::string& state_dir, const LiveRun& live) {
  RunFolder made;
  made.path_ = folder_path(state_dir, live.run);
  TRY(os::make_folders(made.path_, 0700));
  made.folder_ = TRY(open_folder(state_dir, live.run));
  const int folder = made.folder_.get();
  // It has its name only once it is locked and whole.
  made.lock_ = TRY(os::openat2(folder, kNewFile, O_RDWR | O_CREAT | O_EXCL, 0600, kBeneath));
  if (::flock(made.lock_.get(), LOCK_EX | LOCK_NB) != 0) return base::system_error("lock the run");
  TRY(os::write_all(made.lock_.get(), base::encode(live), kLiveFile));
  TRY(os::rename_at(folder, kNewFile, kLiveFile));
  return made;
}

base::Result<base::Fd> RunFolder::listen() const {
  base::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return base::system_error("socket");
  const sockaddr_un address = address_in(folder_.get());
  // Nobody else can reach it in its folder; its own mode says so as well.
  if (::fchmod(socket.get(), 0600) != 0) return base::system_error("fchmod socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return base::system_error("bind the run's socket");
  }
  if (::listen(socket.get(), kBacklog) != 0) return base::system_error("listen");
  return socket;
}

base::Status RunFolder::write_report(std::string_view json) const {
  const base::Fd file = TRY(os::openat2(folder_.get(), kReportFile,
                                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600, kBeneath));
  return os::write_all(file.get(), json, "report");
}

void RunFolder::close() {
  if (!folder_.open()) return;
  (void)::unlinkat(folder_.get(), kSocketFile, 0);
  (void)::unlinkat(folder_.get(), kLiveFile, 0);
  (void)::rmdir(path_.c_str());
  lock_.reset();
  folder_.reset();
}

base::Result<FoundRun> look_at_run(const std::string& state_dir, const std::string& run) {
  const auto folder = open_folder(state_dir, run);
  if (!folder && folder.error().number == ENOENT) return no_such_run(run);
  if (!folder) return std::unexpected(folder.error());
  const Opened live = TRY(open_live(folder->get(), run));
  const std::string bytes = TRY(os::read_all(live.file.get(), kMostLive, kLiveFile));
  return FoundRun{TRY(base::decode<LiveRun>(bytes, run + ": live")), live.alive};
}

base::Result<ipc::Channel> connect_to_run(const std::string& state_dir, const std::string& run) {
  const auto folder = open_folder(state_dir, run);
  if (!folder) return no_such_run(run);
  base::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.open()) return base::system_error("socket");
  const sockaddr_un address = address_in(folder->get());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return no_such_run(run);
    return base::system_error("connect to the run's supervisor");
  }
  return ipc::Channel(std::move(socket));
}

base::Result<bool> settle_lost_run(const std::string& state_dir, const std::string& run,
                                   std::string_view version) {
  const auto folder = open_folder(state_dir, run);
  if (!folder) return false;
  const auto live = open_live(folder->get(), run);
  if (!live && live.error().kind == base::Kind::not_found) {
    // Killed while it made the file.
    (void)::unlinkat(folder->get(), kNewFile, 0);
    return false;
  }
  if (!live) return std::unexpected(live.error());
  if (live->alive || ::flock(live->file.get(), LOCK_EX | LOCK_NB) != 0) return false;
  const std::string bytes = TRY(os::read_all(live->file.get(), kMostLive, kLiveFile));
  const auto known = base::decode<LiveRun>(bytes, run + ": live");
  if (known && ::faccessat(folder->get(), kReportFile, F_OK, 0) != 0) {
    const base::Fd file =
        TRY(os::openat2(folder->get(), kReportFile, O_WRONLY | O_CREAT | O_EXCL, 0600, kBeneath));
    // A journal that is not there or damaged leaves what the start has noted.
    auto past = journal::look_back(state_dir + "/journal", run).value_or(journal::Past{});
    const RunReport report = lost_report(*known, version, std::move(past));
    TRY(os::write_all(file.get(), report_json(report), "report"));
  }
  (void)::unlinkat(folder->get(), kSocketFile, 0);
  (void)::unlinkat(folder->get(), kLiveFile, 0);
  return true;
}

}  // namespace supervisor
