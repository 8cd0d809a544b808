// `cerco cp`: files and folders into a run that lives and out of it, over a file session that
// cerco-init serves as the workload's user.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <optional>
#include <utility>

#include "cli/living.h"
#include "os/os.h"
#include "workspace/workspace.h"

namespace cli {
namespace {

constexpr std::string_view kUsage = "SRC RUN:PATH or cerco cp RUN:PATH DST";
constexpr std::array kStops = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// RUN:PATH. What has a slash before its colon is a path of the host.
struct Inside {
  std::string run;
  std::string path;
};
std::optional<Inside> inside(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == 0 || colon == std::string::npos || text.find('/') < colon) return std::nullopt;
  return Inside{text.substr(0, colon), text.substr(colon + 1)};
}

// A path as the folder that it lies in and its last name; "" where it is a folder's own contents.
struct Split {
  std::string folder;
  std::string name;
};
Split split(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  Split split = slash == std::string::npos ? Split{".", path}
                                           : Split{path.substr(0, slash), path.substr(slash + 1)};
  if (split.folder.empty()) split.folder = "/";
  if (split.name == "." || split.name == "..") split = {path, ""};
  return split;
}

// A file session on a folder inside, and the connection that keeps it known to the supervisor.
struct Opened {
  base::Fd socket;
  ipc::Channel channel;
};
base::Result<Opened> open_session(const World& world, const std::string& run,
                                  const std::string& folder) {
  auto channel = TRY(supervisor::connect_to_run(world.state_dir, run));
  auto [near, far] = TRY(os::socket_pair(SOCK_SEQPACKET));
  const std::array<int, 1> fds = {far.get()};
  const std::string root = folder == "." ? "" : folder;
  TRY_IN("cp", ask(channel, supervisor::OpenFiles{root}, fds));
  far.reset();
  TRY(await_done(channel));
  return Opened{std::move(near), std::move(channel)};
}

// Whether the session's root is a folder that can be had: a put of no name is refused, by the
// session itself where there is one, and before that where there is none.
base::Result<bool> is_folder(const Opened& session) {
  (void)os::send_message(session.socket.get(),
                         base::encode(frame::FileFrame(frame::PutFolder{".", 0700})), {});
  const auto answer = TRY(os::receive_message(session.socket.get(), frame::kMaxFrame, 0));
  if (answer.end) return base::fail(base::Kind::peer, "cp", "the session ended early", {});
  const auto word = TRY(base::decode<frame::FileFrame>(answer.bytes, "files"));
  const auto* refused = std::get_if<frame::Refused>(&word);
  return refused != nullptr && refused->what.starts_with(".: ");
}

workspace::Session session_of(const Opened& opened, const base::Fd& stop) {
  return {.socket = opened.socket.get(), .stop = stop.get(), .what = "cp"};
}

base::Status copy_in(const World& world, const std::string& source, const Inside& to) {
  const KnownRun known = TRY(find_run(world, to.run));
  const supervisor::LiveRun run = TRY(supervisor::look_at_run(world.state_dir, known.id)).run;
  const base::Fd stop = TRY(os::signal_descriptor(kStops));
  std::string real = source;
  while (real.size() > 1 && real.ends_with('/')) real.pop_back();
  if (split(real).name.empty() || real == "/") real = TRY_IN("cp", os::real_path(real));
  std::string name = split(real).name;
  Opened opened = TRY(open_session(world, known.id, to.path));
  if (!TRY(is_folder(opened))) {
    const Split place = split(to.path);
    if (to.path.ends_with('/') || place.name.empty()) {
      return base::bad_input("cp", base::printable(to.path) + " is no folder inside",
                             "expected one that is there");
    }
    name = place.name;
    opened = TRY(open_session(world, known.id, place.folder));
    if (!TRY(is_folder(opened))) {
      return base::bad_input("cp", base::printable(place.folder) + " is no folder inside",
                             "expected one that is there, without links on its way");
    }
  }
  workspace::Manifest manifest;
  const auto hidden = TRY(
      workspace::put(session_of(opened, stop), {.source = real, .path = name}, run.hide, manifest));
  for (const std::string& path : hidden) {
    print_error(world, "cerco: came in empty by filesystem.hide: " + base::printable(path) + "\n");
  }
  return {};
}

// Where it goes on the host: a folder that is open, and the name in it; "": into the folder itself.
struct Target {
  base::Fd folder;
  std::string name;
};
base::Result<Target> target_of(const std::string& destination, const std::string& name) {
  auto folder = os::open(destination, O_PATH | O_DIRECTORY, 0);
  if (folder) return Target{std::move(*folder), name};
  const Split place = split(destination);
  if (folder.error().number == ENOENT && name.empty()) {
    TRY_IN("cp", os::make_folders(destination, 0777));
    return Target{TRY_IN("cp", os::open(destination, O_PATH | O_DIRECTORY, 0)), ""};
  }
  if (destination.ends_with('/') || place.name.empty()) {
    return base::bad_input("cp", base::printable(destination) + " is no folder",
                           "expected one that is there");
  }
  return Target{TRY_IN("cp", os::open(place.folder, O_PATH | O_DIRECTORY, 0)), place.name};
}

base::Status copy_out(const World& world, const Inside& from, const std::string& destination) {
  const KnownRun known = TRY(find_run(world, from.run));
  const supervisor::LiveRun run = TRY(supervisor::look_at_run(world.state_dir, known.id)).run;
  const base::Fd stop = TRY(os::signal_descriptor(kStops));
  const Split source = split(from.path);
  const Opened opened = TRY(open_session(world, known.id, source.folder));
  if (!TRY(is_folder(opened))) {
    return base::bad_input("cp", base::printable(source.folder) + " is no folder inside",
                           "expected one that is there, without links on its way");
  }
  const Target target = TRY(target_of(destination, source.name));
  const workspace::Caps caps = {.bytes = run.disk, .entries = run.inodes};
  const auto taken =
      source.name.empty()
          ? TRY(workspace::take(session_of(opened, stop), target.folder.get(), {}, caps))
          : TRY(workspace::take_one(session_of(opened, stop), source.name, target.folder.get(),
                                    target.name, caps));
  for (const std::string& left_out : taken.left_out) {
    print_error(world, "cerco: not brought out: " + base::printable(left_out) + "\n");
  }
  if (taken.left_out_count == 0) return {};
  return base::fail(base::Kind::missing, "cp",
                    std::to_string(taken.left_out_count) + " things were not brought out", {});
}

}  // namespace

base::Result<int> cp(const World& world, const Parsed& parsed) {
  TRY(want_words("cp", parsed, 2, kUsage));
  const auto from = inside(parsed.words[0]);
  const auto to = inside(parsed.words[1]);
  if (from.has_value() == to.has_value()) {
    return base::bad_input("cp", from ? "both sides are of a run" : "neither side is of a run",
                           "expected cerco cp " + std::string(kUsage));
  }
  if ((from ? from->path : to->path).empty()) {
    return base::bad_input("cp", "RUN: has no path", "expected cerco cp " + std::string(kUsage));
  }
  TRY(from ? copy_out(world, *from, parsed.words[1]) : copy_in(world, parsed.words[0], *to));
  return 0;
}

}  // namespace cli
