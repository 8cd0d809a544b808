// The start of a container, seen from its starter: leases, groups, parts, and the two processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "sandbox/container/container.h"
#include "sandbox/container/init_program.h"
#include "sandbox/container/outer.h"
#include "sandbox/container/rights.h"
#include "sandbox/container/start_channel.h"
#include "tunnel/tunnel.h"

namespace sandbox {

namespace {

constexpr int kPatienceMs = 30'000;  // longest wait for the next note
constexpr std::size_t kMostSaid = 64 * 1024;
constexpr int kClearOf =
    16;  // descriptors of the start lie above every number that is filled later

priv::Badge badge() {
  return Rights::badge();
}

struct Pair {
  base::Fd ours;
  base::Fd theirs;
};

base::Result<base::Fd> clear(const base::Fd& fd) {
  base::Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kClearOf));
  if (!copy.open()) return base::system_error("dup");
  return copy;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return base::printable(std::string_view(text).substr(text.rfind('\n') + 1));
}

base::Result<Pair> make_pair() {
  auto ends = TRY(os::socket_pair(SOCK_SEQPACKET));
  Pair pair;
  pair.ours = base::Fd(::fcntl(ends.first.get(), F_DUPFD_CLOEXEC, kClearOf));
  pair.theirs = base::Fd(::fcntl(ends.second.get(), F_DUPFD_CLOEXEC, kClearOf));
  if (!pair.ours.open() || !pair.theirs.open()) return base::system_error("dup");
  return pair;
}

// One start. Whatever it holds when it ends early is given back.
class Start {
 public:
  explicit Start(const Prepared& prepared) : prepared_(prepared) {}
  base::Result<std::unique_ptr<Sandbox>> run();

 private:
  base::Status reserve();
  base::Status make_streams();
  base::Status begin_tunnel();
  base::Status clone_outer();
  base::Status make_disk();
  base::Status make_layers();
  base::Status listen();
  base::Status take(ReceivedNote& received);
  base::Status give_parts();
  base::Status carry_out();
  void find_what_was_cloned();
  base::Status take_sockets(ReceivedNote& received);

  Prepared prepared_;
  Holdings held_;
  os::Child outer_;
  Pair channel_;
  Pair control_;
  Pair streams_[2];  // of runsc: what it reads, what it writes
  base::Fd said_;    // and what it says of failures
  base::Fd init_;
  base::Fd user_space_;
  base::Fd id_map_;  // of what a scratch root shows of the host
};

// What two runs must not share.
base::Status Start::reserve() {
  const plan::Plan& plan = *prepared_.plan;
  if (prepared_.user_space) {
    held_.lease = TRY_IN("MapUsers", priv::take_lease(badge(), plan.state_dir));
    held_.owner = held_.lease.first();
  }
  prepared_.owner = held_.owner;
  prepared_.workload = held_.owner + kWorkload;
  if (prepared_.own_space) {
    held_.only_uid = prepared_.caller.uid;
    prepared_.owner = kWorkload;
    prepared_.workload = kWorkload;
  }
  prepared_.workload_option = std::to_string(prepared_.workload);
  held_.network = prepared_.network;
  if (!prepared_.enters_cgroup) return {};
  const auto specs = group_specs(plan);
  if (held_.lease.held()) TRY(held_.lease.note_groups(priv::group_paths(specs, plan.run)));
  held_.groups = TRY_IN("EnterCgroup", priv::make_groups(badge(), specs, plan.run));
  held_.memory = TRY_IN("EnterCgroup", held_.groups.watch_memory());
  return {};
}

base::Status Start::make_streams() {
  for (const bool down : {true, false}) {
    auto [reads, writes] = TRY(os::pipe());
    Pair& stream = streams_[down ? 0 : 1];
    stream.ours = std::move(down ? writes : reads);
    stream.theirs = TRY(clear(down ? reads : writes));
  }
  const base::Fd memory(::memfd_create("runsc", MFD_CLOEXEC));
  said_ = TRY(clear(memory));
  return {};
}

// runsc has begun once cerco-init has said a word; else why it did not.
base::Status Start::begin_tunnel() {
  if (prepared_.gvisor == nullptr) return {};
  pollfd first[] = {{streams_[1].ours.get(), POLLIN, 0}, {held_.init.pidfd(), POLLIN, 0}};
  int ready = -1;
  do {
    ready = ::poll(first, 2, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  if ((first[0].revents & POLLIN) == 0) {
    const std::string why = last_line(os::read_all(said_.get(), kMostSaid, "runsc").value_or(""));
    return base::fail(base::Kind::system, "RunGvisor", why.empty() ? "runsc said nothing" : why,
                      {});
  }
  auto tunnel = TRY(tunnel::start(prepared_.plan->helper_dir + "/cerco-tunnel",
                                  streams_[1].ours.get(), streams_[0].ours.get()));
  held_.tunnel = std::move(tunnel.child);
  control_.ours = tunnel.control.release();
  return {};
}

base::Status Start::clone_outer() {
  channel_ = TRY(make_pair());
  control_ = TRY(make_pair());
  if (prepared_.gvisor != nullptr) TRY(make_streams());
  const int cgroup = held_.groups.v2();
  const priv::Cloned cloned =
      prepared_.own_space ? TRY_IN("MapUsers", priv::clone_into_own_space(badge(), cgroup))
                          : TRY_IN("EnterCgroup", priv::clone_process(badge(), 0, 0, cgroup));
  if (cloned.pid == 0) {
    channel_.ours.reset();
    control_.ours.reset();
    for (Pair& stream : streams_) stream.ours.reset();
    run_outer(prepared_, held_.groups,
              {channel_.theirs.get(),
               control_.theirs.get(),
               {streams_[0].theirs.get(), streams_[1].theirs.get(), said_.get()}});
  }
  outer_ = os::Child(cloned.pid, TRY(os::open_pidfd(cloned.pid)));
  channel_.theirs.reset();
  control_.theirs.reset();
  for (Pair& stream : streams_) stream.theirs.reset();
  return {};
}

// The root and all changes are the workload's; what they are made by is out of its reach.
base::Status Start::make_layers() {
  const auto make = [&](const std::string& name, std::uint32_t mode, std::uint32_t owner) {
    return priv::make_disk_folder(badge(), held_.disk.get(), name, mode, owner);
  };
  TRY(make(kRootFolder, 0755, prepared_.workload));
  for (const char* name : {kLower, kSeen, kNothing}) TRY(make(name, 0755, 0));
  for (const Layer& layer : prepared_.layers) {
    TRY(make(layer.upper, 0755, prepared_.workload));
    TRY(make(layer.work, 0700, 0));
  }
  id_map_ = TRY_IN("LayScratch", priv::make_id_map(badge(), held_.owner, kWorkload));
  return {};
}

base::Status Start::make_disk() {
  if (!prepared_.disk_from_outside()) return {};
  held_.disk =
      prepared_.disk->store == plan::Store::device
          ? TRY(priv::mount_guest_disk(badge(), plan::kGuestDisk))
          : TRY(priv::make_disk(
                badge(), prepared_.plan->state_dir, {prepared_.disk->size, prepared_.disk->inodes},
                prepared_.disk->blocks == plan::Blocks::reserved ? priv::Blocks::reserved
                                                                 : priv::Blocks::as_written));
  if (prepared_.scratch) TRY(make_layers());
  for (const auto& folder : prepared_.disk_folders) {
    TRY(priv::make_disk_folder(badge(), held_.disk.get(), folder.name, folder.mode,
                               prepared_.workload));
  }
  return {};
}

base::Status Start::take_sockets(ReceivedNote& received) {
  if (received.count != 8) return base::system_error("start channel", EPROTO);
  auto* fds = received.fds;
  held_.capture = {std::move(fds[0]), std::move(fds[1]), std::move(fds[2]), std::move(fds[3]),
                   std::move(fds[4]), std::move(fds[5]), std::move(fds[6])};
  held_.rules = std::move(fds[7]);
  return {};
}

base::Status Start::give_parts() {
  int fds[4] = {};
  std::size_t count = 0;
  fds[count++] = init_.get();
  if (prepared_.user_space) fds[count++] = user_space_.get();
  if (prepared_.disk_from_outside()) fds[count++] = held_.disk.get();
  if (prepared_.scratch) fds[count++] = id_map_.get();
  Note note;
  note.kind = NoteKind::parts;
  const auto sent = send_note(channel_.ours.get(), note, {fds, count});
  // Whoever has ended meanwhile said why before.
  return !sent && sent.error().number == EPIPE ? base::Status() : sent;
}

base::Status Start::take(ReceivedNote& received) {
  switch (received.note.kind) {
    case NoteKind::cloned:
      held_.init = os::Child(received.note.number, TRY(os::open_pidfd(received.note.number)));
      if (!prepared_.user_space) return give_parts();
      return {};
    case NoteKind::user_space:
      TRY_IN("MapUsers",
             priv::write_user_maps(badge(), outer_.pid(), held_.owner,
                                   plan::step_of<plan::MapUsers>(*prepared_.plan)->count));
      user_space_ = TRY_IN("MapUsers", priv::user_namespace_of(badge(), outer_.pid()));
      return give_parts();
    case NoteKind::sockets:
      return take_sockets(received);
    case NoteKind::disk:
      if (received.count != 1) return base::system_error("start channel", EPROTO);
      held_.disk = std::move(received.fds[0]);
      return {};
    case NoteKind::tap:
      if (received.count != 1) return base::system_error("start channel", EPROTO);
      held_.tap = std::move(received.fds[0]);
      return {};
    case NoteKind::failed: {
      base::Error error =
          base::system_error(std::string(received.note.said()), received.note.number).error();
      error.kind = static_cast<base::Kind>(received.note.base_kind);
      return std::unexpected(std::move(error));
    }
    case NoteKind::parts:
      break;
  }
  return base::system_error("start channel", EPROTO);
}

bool readable(int fd, int ms) {
  pollfd polled = {fd, POLLIN, 0};
  int ready = -1;
  do {
    ready = ::poll(&polled, 1, ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Until the last holder of the channel's other end has executed cerco-init.
base::Status Start::listen() {
  while (true) {
    if (!readable(channel_.ours.get(), kPatienceMs)) {
      return base::system_error("start channel", ETIMEDOUT);
    }
    ReceivedNote received = TRY(receive_note(channel_.ours.get()));
    if (received.end) break;
    TRY(take(received));
  }
  if (!held_.init.running() || readable(held_.init.pidfd(), 0)) {
    return base::fail(base::Kind::system, "CloneNamespaces", "ended without a word", {});
  }
  return {};
}

// After a failure: what outer may just be cloning is a child of ours, to be killed and reaped.
void Start::find_what_was_cloned() {
  while (outer_.running() && !held_.init.running() && readable(channel_.ours.get(), kPatienceMs)) {
    const auto received = receive_note(channel_.ours.get());
    if (!received || received->end || received->note.kind == NoteKind::failed) return;
    if (received->note.kind != NoteKind::cloned) continue;
    auto pidfd = os::open_pidfd(received->note.number);
    if (pidfd) held_.init = os::Child(received->note.number, std::move(*pidfd));
  }
}

base::Status Start::carry_out() {
  TRY(reserve());
  TRY(clone_outer());
  // While the two processes work, what takes longest besides.
  TRY_IN("MountDisk", make_disk());
  init_ = TRY(init_program(prepared_.inputs->init_path, held_.owner));
  return listen();
}

base::Result<std::unique_ptr<Sandbox>> Start::run() {
  if (auto done = carry_out(); !done) {
    find_what_was_cloned();
    return std::unexpected(std::move(done).error());
  }
  TRY(begin_tunnel());
  held_.control = ipc::Channel(std::move(control_.ours));
  return std::make_unique<Container>(std::move(held_));
}

}  // namespace

base::Result<std::unique_ptr<Sandbox>> start_container(const plan::Plan& plan,
                                                       const Inputs& inputs) {
  const Prepared prepared = TRY(prepare(plan, inputs));
  return Start(prepared).run();
}

base::Status prepare_spare(const plan::Plan& plan) {
  const auto* disk = plan::step_of<plan::MountDisk>(plan);
  if (disk == nullptr || disk->store != plan::Store::image) return {};
  return priv::fill_shelf(badge(), plan.state_dir, {disk->size, disk->inodes});
}

}  // namespace sandbox
