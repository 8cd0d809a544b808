// The acts of a start inside the new namespaces: one function a Step of plan.h, same order, same
// names.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "confine/confine.h"
#include "sandbox/container/outer.h"
#include "sandbox/container/rights.h"
#include "sandbox/container/start_channel.h"
#include "sandbox/container/step_name.h"
#include "sandbox/gvisor/gvisor.h"

namespace sandbox {

namespace {

using priv::Depth;
using priv::kNoDev;
using priv::kNoExec;
using priv::kNoSuid;
using priv::kReadOnly;
using priv::Place;

constexpr const char* kDisk = "/.disk";    // where the disk is attached while its folders are taken
constexpr const char* kTrust = "/.trust";  // and the bundle while it is bound over its targets
// Within the folder that /proc is mounted over, so that nobody ever sees them.
constexpr const char* kEmptyFile = "/proc/file";
constexpr const char* kEmptyFolder = "/proc/folder";
constexpr const char* kMeminfo = "/proc/meminfo";
constexpr unsigned kMisc = 10;  // major of /dev/kvm, and its minor
constexpr unsigned kKvm = 232;
constexpr int kControl = 3;  // cerco-init's only descriptor besides 0 to 2

class Inner {
 public:
  Inner(const Prepared& prepared, const priv::Inside& inside, const StartEnds& ends)
      : prepared_(prepared), inside_(inside), ends_(ends) {}

  base::Status start();

 private:
  // Done by outer.cc before this process exists.
  base::Status act(const plan::EnterCgroup&) { return {}; }
  base::Status act(const plan::CloneNamespaces&) { return {}; }
  base::Status act(const plan::MapUsers&) { return {}; }

  base::Status act(const plan::SetHostname& step);
  base::Status act(const plan::Capture& step);
  base::Status act(const plan::MakeTap& step);
  base::Status act(const plan::MountRoot& step);
  base::Status act(const plan::MakeFolder& step);
  base::Status act(const plan::MakeLink& step);
  base::Status act(const plan::BindReadOnly& step);
  base::Status act(const plan::WriteFile& step);
  base::Status act(const plan::TrustBundle& step);
  base::Status act(const plan::MountDisk& step);
  base::Status act(const plan::MountDev& step);
  base::Status act(const plan::MountCgroups& step);
  base::Status act(const plan::MountProc& step);
  base::Status act(const plan::PivotRoot& step);

  base::Status act(const plan::Landlock& step);
  base::Status act(const plan::DropCapabilities& step);
  // Raised here where the host's hard limit is lower, while that may be done; cerco-init sets it
  // again for each command.
  base::Status act(const plan::Rlimits& step);
  // Done by cerco-init for each command.
  base::Status act(const plan::NoNewPrivs&) { return {}; }
  base::Status act(const plan::Seccomp&) { return {}; }
  // Done last of all, in the place of execute().
  base::Status act(const plan::RunGvisor&) { return {}; }

  base::Status open_proc();
  base::Status receive_parts();
  base::Status null_streams();
  base::Status enter_user_namespace();
  base::Status attach_at(int mount, const std::string& target, Place kind);
  base::Status cover(const std::string& path);
  base::Status show_meminfo();
  base::Status bind_group(const std::string& group, const std::string& target);
  base::Status keep_read_only(const std::string& path);
  base::Status make_memory_disk();
  base::Status bind_device(const char* path, unsigned major, unsigned minor);
  base::Status mount_in_dev(const char* kind, const char* path,
                            std::initializer_list<priv::MountOption> options,
                            std::uint64_t attributes);
  base::Status execute();
  [[nodiscard]] std::uint32_t owner_of(const std::string& target) const;
  [[nodiscard]] std::uint64_t base_attributes(const std::string& source) const;

  const Prepared& prepared_;
  const priv::Inside& inside_;
  const StartEnds& ends_;
  base::Fd root_;         // of the tree that is being built
  base::Fd proc_;         // a procfs of the new pid namespace
  base::Fd user_limits_;  // its sys/user, which stays writable for this process alone
  base::Fd init_;         // parts that the starter sends
  base::Fd user_space_;
  base::Fd disk_;
  base::Fd runsc_;
  base::Fd masks_;  // the folder that /proc covers, with an empty file and an empty folder
  bool disk_mounted_ = false;
  bool pivoted_ = false;
};

priv::Badge badge() {
  return Rights::badge();
}

base::Status as_status(const confine::Outcome& outcome) {
  if (outcome) return {};
  return base::system_error(outcome.error().step, outcome.error().number);
}

bool restricts(const plan::Step& step) {
  return std::holds_alternative<plan::Landlock>(step) ||
         std::holds_alternative<plan::DropCapabilities>(step);
}

base::Status Inner::start() {
  ::umask(0);
  TRY(priv::die_with_parent(badge()));
  TRY(open_proc());
  if (prepared_.gvisor != nullptr) {
    runsc_ = TRY_IN("RunGvisor", os::open(prepared_.gvisor->program, O_PATH, 0));
  }
  const auto carry_out = [&](const plan::Step& step) -> base::Status {
    const auto done = std::visit([&](const auto& held) { return act(held); }, step);
    if (done) return {};
    base::Error error = done.error();
    return std::unexpected(std::move(error).within(step_name(step)));
  };
  for (const auto& step : prepared_.plan->steps) {
    if (!restricts(step)) TRY(carry_out(step));
  }
  TRY(receive_parts());
  TRY(null_streams());
  if (prepared_.gvisor == nullptr) TRY_IN("MapUsers", enter_user_namespace());
  if (prepared_.has(plan::Protection::session_keyring)) {
    TRY(as_status(confine::new_session_keyring()));
  }
  for (const auto& step : prepared_.plan->steps) {
    if (restricts(step)) TRY(carry_out(step));
  }
  return prepared_.gvisor == nullptr ? execute() : gvisor::execute(prepared_, ends_, runsc_.get());
}

// A procfs before any step: for the settings of the network and of the user namespace.
base::Status Inner::open_proc() {
  proc_ = TRY(priv::new_mount(badge(), "proc", {}, kNoSuid | kNoDev | kNoExec));
  user_limits_ = base::Fd(::openat(proc_.get(), "sys/user", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!user_limits_.open()) return base::system_error("open sys/user of proc");
  return {};
}

base::Status Inner::act(const plan::Rlimits& step) {
  // Init's as well, with what it starts: no command could get more again.
  if (step.processes != 0) TRY(as_status(confine::limit_processes(step.processes)));
  if (step.processors != 0) TRY(os::use_processors(step.processors));
  // gVisor's kernel holds the limit inside; its own descriptors are others.
  return as_status(confine::rlimits(prepared_.gvisor == nullptr ? step.files : 0));
}

base::Status Inner::act(const plan::SetHostname& step) {
  return priv::set_hostname(badge(), inside_, step.name);
}

base::Status Inner::act(const plan::Capture&) {
  const base::Fd routes = TRY(priv::open_netlink(badge(), NETLINK_ROUTE));
  TRY(priv::transact(badge(), inside_, routes.get(), prepared_.interface));
  TRY(priv::free_low_ports(badge(), inside_, proc_.get()));
  const base::Fd rules = TRY(priv::open_netlink(badge(), NETLINK_NETFILTER));
  TRY_IN("packet rules", priv::transact(badge(), inside_, rules.get(), prepared_.rules));
  const priv::CatchingSockets sockets =
      TRY(priv::open_catching_sockets(badge(), inside_, prepared_.network));
  const int fds[] = {
      sockets.tcp4.get(),     sockets.tcp6.get(),     sockets.dns4.get(),    sockets.dns6.get(),
      sockets.dns_tcp4.get(), sockets.dns_tcp6.get(), sockets.refused.get(), rules.get()};
  Note note;
  note.kind = NoteKind::sockets;
  TRY(send_note(ends_.channel, note, fds));
  if (prepared_.gvisor == nullptr) return {};
  return gvisor::make_network(prepared_, inside_, proc_.get(), routes.get());
}

base::Status Inner::act(const plan::MakeTap&) {
  const base::Fd tap = TRY(priv::make_tap(badge(), inside_));
  const base::Fd routes = TRY(priv::open_netlink(badge(), NETLINK_ROUTE));
  TRY(priv::transact(badge(), inside_, routes.get(), prepared_.tap));
  const int fds[] = {tap.get()};
  Note note;
  note.kind = NoteKind::tap;
  return send_note(ends_.channel, note, fds);
}

base::Status Inner::act(const plan::MountRoot&) {
  TRY(priv::make_private(badge(), inside_));
  root_ = TRY(priv::new_mount(badge(), "tmpfs",
                              {{"size", prepared_.root_size.c_str()}, {"mode", "0755"}},
                              kNoSuid | kNoDev));
  if (::fchownat(root_.get(), "", prepared_.owner, prepared_.owner, AT_EMPTY_PATH) != 0) {
    return base::system_error("chown /");
  }
  // On top of the old root, whose paths still resolve below it until the pivot.
  const base::Fd place(::open("/", O_PATH | O_CLOEXEC));
  return priv::attach(badge(), inside_, root_.get(), place.get());
}

base::Status Inner::act(const plan::MakeFolder& step) {
  return priv::make_folder(badge(), inside_, root_.get(), step.target.c_str(), step.mode,
                           owner_of(step.target));
}

base::Status Inner::act(const plan::MakeLink& step) {
  return priv::make_link(badge(), inside_, root_.get(), step.target.c_str(), step.text.c_str(),
                         prepared_.owner);
}

base::Status Inner::act(const plan::BindReadOnly& step) {
  const base::Fd source =
      TRY_IN("host", os::openat2(AT_FDCWD, step.source, O_PATH, 0, RESOLVE_NO_MAGICLINKS));
  struct stat status = {};
  if (::fstat(source.get(), &status) != 0) return base::system_error(step.source);
  const base::Fd tree =
      TRY_IN(step.source, priv::clone_tree(badge(), inside_, source.get(), "", Depth::whole));
  TRY_IN(step.source, priv::set_attributes(badge(), inside_, tree.get(),
                                           base_attributes(step.source), Depth::whole));
  return attach_at(tree.get(), step.target, S_ISDIR(status.st_mode) ? Place::folder : Place::file);
}

base::Status Inner::act(const plan::WriteFile& step) {
  return priv::write_file(badge(), inside_, root_.get(), step.target.c_str(), step.content,
                          step.mode, owner_of(step.target));
}

base::Status Inner::act(const plan::TrustBundle& step) {
  TRY(priv::write_file(badge(), inside_, root_.get(), kTrust, prepared_.inputs->trust_bundle, 0444,
                       prepared_.owner));
  for (const auto& target : step.targets) {
    const base::Fd bundle =
        TRY(priv::clone_tree(badge(), inside_, root_.get(), kTrust + 1, Depth::one));
    TRY(priv::set_attributes(badge(), inside_, bundle.get(), kReadOnly | kNoSuid | kNoDev | kNoExec,
                             Depth::one));
    TRY_IN(target, attach_at(bundle.get(), target, Place::file));
  }
  if (::unlinkat(root_.get(), kTrust + 1, 0) != 0) return base::system_error("unlink");
  return {};
}

// A tmpfs that the starter holds as well, to see how full it is.
base::Status Inner::make_memory_disk() {
  disk_ = TRY(priv::new_mount(badge(), "tmpfs",
                              {{"size", prepared_.disk_size.c_str()},
                               {"nr_inodes", prepared_.disk_inodes.c_str()},
                               {"mode", "0755"}},
                              kNoSuid | kNoDev));
  for (const auto& folder : prepared_.disk_folders) {
    TRY(priv::make_disk_folder(badge(), disk_.get(), folder.name, folder.mode, prepared_.workload));
  }
  const int fds[] = {disk_.get()};
  Note note;
  note.kind = NoteKind::disk;
  return send_note(ends_.channel, note, fds);
}

base::Status Inner::act(const plan::MountDisk& step) {
  if (step.store == plan::Store::memory) {
    TRY(make_memory_disk());
  } else {
    TRY(receive_parts());
  }
  TRY(attach_at(disk_.get(), kDisk, Place::folder));
  for (const auto& folder : prepared_.disk_folders) {
    const base::Fd top = TRY(priv::find_in(root_.get(), kDisk));
    const base::Fd tree =
        TRY(priv::clone_tree(badge(), inside_, top.get(), folder.name.c_str(), Depth::one));
    TRY_IN(folder.target, attach_at(tree.get(), folder.target, Place::folder));
  }
  TRY(priv::detach(badge(), inside_, root_.get(), kDisk + 1));
  if (::unlinkat(root_.get(), kDisk + 1, AT_REMOVEDIR) != 0) return base::system_error("rmdir");
  disk_mounted_ = true;
  return {};
}

// What is bound is the kernel's own device, whatever somebody may have put into the host's /dev.
base::Status Inner::bind_device(const char* path, unsigned major, unsigned minor) {
  const base::Fd source = TRY_IN(
      "host", os::openat2(AT_FDCWD, path, O_PATH, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  struct stat status = {};
  if (::fstat(source.get(), &status) != 0) return base::system_error(path);
  if (!S_ISCHR(status.st_mode) || status.st_rdev != makedev(major, minor)) {
    return base::system_error(std::string("device ") + path, ENODEV);
  }
  const base::Fd device =
      TRY_IN(path, priv::clone_tree(badge(), inside_, source.get(), "", Depth::one));
  TRY(priv::set_attributes(badge(), inside_, device.get(), kNoSuid | kNoExec, Depth::one));
  return attach_at(device.get(), path, Place::file);
}

base::Status Inner::act(const plan::MountDev& step) {
  struct Device {
    const char* path;
    unsigned major;
    unsigned minor;
  };
  static constexpr Device kDevices[] = {{"/dev/null", 1, 3},    {"/dev/zero", 1, 5},
                                        {"/dev/full", 1, 7},    {"/dev/random", 1, 8},
                                        {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};
  static constexpr const char* kLinks[][2] = {{"/dev/fd", "/proc/self/fd"},
                                              {"/dev/ptmx", "pts/ptmx"},
                                              {"/dev/stdin", "/proc/self/fd/0"},
                                              {"/dev/stdout", "/proc/self/fd/1"},
                                              {"/dev/stderr", "/proc/self/fd/2"}};
  const base::Fd dev = TRY(
      priv::new_mount(badge(), "tmpfs", {{"size", "65536"}, {"mode", "0755"}}, kNoSuid | kNoExec));
  if (::fchownat(dev.get(), "", prepared_.owner, prepared_.owner, AT_EMPTY_PATH) != 0) {
    return base::system_error("chown /dev");
  }
  TRY(attach_at(dev.get(), "/dev", Place::folder));
  const int root = root_.get();
  for (const auto& [path, major, minor] : kDevices) {
    if (step.devices == plan::Devices::bound) {
      TRY(bind_device(path, major, minor));
      continue;
    }
    TRY(priv::make_device(badge(), inside_, root, path, major, minor, prepared_.owner));
  }
  // A plan with a machine comes here for its VMM's box alone.
  const auto& machine = prepared_.plan->machine;
  if (machine && machine->accelerator == plan::Accelerator::kvm) {
    TRY(priv::make_device(badge(), inside_, root, "/dev/kvm", kMisc, kKvm, prepared_.owner));
  }
  for (const auto& [path, text] : kLinks) {
    TRY(priv::make_link(badge(), inside_, root, path, text, prepared_.owner));
  }
  TRY(mount_in_dev("tmpfs", "/dev/shm", {{"size", prepared_.shm_size.c_str()}, {"mode", "1777"}},
                   kNoSuid | kNoDev | kNoExec));
  TRY(mount_in_dev("mqueue", "/dev/mqueue", {}, kNoSuid | kNoDev | kNoExec));
  // Its terminals are the workload's, whoever opens them, and are of no other instance.
  TRY(mount_in_dev("devpts", "/dev/pts",
                   {{"uid", prepared_.workload_option.c_str()},
                    {"gid", prepared_.workload_option.c_str()},
                    {"mode", "0620"},
                    {"ptmxmode", "0666"},
                    {"max", prepared_.terminals.c_str()}},
                   kNoSuid | kNoExec));
  return priv::set_attributes(badge(), inside_, dev.get(), kReadOnly, Depth::one);
}

base::Status Inner::mount_in_dev(const char* kind, const char* path,
                                 std::initializer_list<priv::MountOption> options,
                                 std::uint64_t attributes) {
  const base::Fd made = TRY(priv::new_mount(badge(), kind, options, attributes));
  const base::Fd place = TRY_IN(
      path, priv::make_place(badge(), inside_, root_.get(), path, Place::folder, prepared_.owner));
  return priv::attach(badge(), inside_, made.get(), place.get());
}

base::Status Inner::bind_group(const std::string& group, const std::string& target) {
  const base::Fd source =
      TRY_IN("host", os::openat2(AT_FDCWD, group, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_MAGICLINKS));
  const base::Fd tree =
      TRY_IN(group, priv::clone_tree(badge(), inside_, source.get(), "", Depth::one));
  TRY(priv::set_attributes(badge(), inside_, tree.get(), kReadOnly | kNoSuid | kNoDev | kNoExec,
                           Depth::one));
  return attach_at(tree.get(), target, Place::folder);
}

// Within the cgroup namespace the own group is the top of its hierarchy, as these mounts say too.
base::Status Inner::act(const plan::MountCgroups&) {
  const auto& shown = prepared_.shown_groups;
  if (shown.size() != 1 || shown.front().target != kCgroups) {
    TRY(priv::make_place(badge(), inside_, root_.get(), kCgroups, Place::folder, prepared_.owner));
  }
  for (const auto& group : shown) TRY(bind_group(group.source, group.target));
  return {};
}

base::Status Inner::act(const plan::MountProc& step) {
  const int root = root_.get();
  masks_ = TRY(priv::make_place(badge(), inside_, root, "/proc", Place::folder, prepared_.owner));
  if (!step.masks.empty()) {
    TRY(priv::write_file(badge(), inside_, root, kEmptyFile, {}, 0444, prepared_.owner));
    TRY(priv::make_folder(badge(), inside_, root, kEmptyFolder, 0555, prepared_.owner));
  }
  if (!step.meminfo.empty()) {
    TRY(priv::write_file(badge(), inside_, root, kMeminfo, step.meminfo, 0444, prepared_.owner));
  }
  TRY(attach_at(proc_.get(), "/proc", Place::folder));
  for (const auto& path : step.read_only) TRY_IN(path, keep_read_only(path));
  for (const auto& path : step.masks) TRY_IN(path, cover(path));
  if (step.meminfo.empty()) return {};
  return show_meminfo();
}

base::Status Inner::show_meminfo() {
  const base::Fd place = TRY(priv::find_in(root_.get(), kMeminfo));
  const base::Fd ours =
      TRY(priv::clone_tree(badge(), inside_, masks_.get(), "meminfo", Depth::one));
  TRY(priv::set_attributes(badge(), inside_, ours.get(), kReadOnly | kNoSuid | kNoDev | kNoExec,
                           Depth::one));
  return priv::attach(badge(), inside_, ours.get(), place.get());
}

// A kernel that does not have the file has nothing to hide.
base::Status Inner::cover(const std::string& path) {
  const auto place = priv::find_in(root_.get(), path.c_str());
  if (!place && place.error().number == ENOENT) return {};
  if (!place) return std::unexpected(place.error());
  struct stat status = {};
  if (::fstat(place->get(), &status) != 0) return base::system_error("fstat");
  const char* with = S_ISDIR(status.st_mode) ? "folder" : "file";
  const base::Fd mask = TRY(priv::clone_tree(badge(), inside_, masks_.get(), with, Depth::one));
  TRY(priv::set_attributes(badge(), inside_, mask.get(), kReadOnly | kNoSuid | kNoDev | kNoExec,
                           Depth::one));
  return priv::attach(badge(), inside_, mask.get(), place->get());
}

base::Status Inner::keep_read_only(const std::string& path) {
  const auto place = priv::find_in(root_.get(), path.c_str());
  if (!place && place.error().number == ENOENT) return {};
  if (!place) return std::unexpected(place.error());
  const base::Fd tree = TRY(priv::clone_tree(badge(), inside_, place->get(), "", Depth::one));
  TRY(priv::set_attributes(badge(), inside_, tree.get(), kReadOnly, Depth::one));
  return priv::attach(badge(), inside_, tree.get(), place->get());
}

base::Status Inner::act(const plan::PivotRoot&) {
  if (prepared_.gvisor != nullptr) {
    TRY(receive_parts());
    TRY(gvisor::place_init(prepared_, inside_, root_.get(), init_.get()));
  }
  if (prepared_.has(plan::Protection::read_only_base)) {
    TRY(priv::set_attributes(badge(), inside_, root_.get(), kReadOnly, Depth::one));
  }
  if (prepared_.gvisor != nullptr) TRY(gvisor::prepare(prepared_, inside_, root_.get()));
  pivoted_ = true;
  return priv::pivot_root(badge(), inside_, root_.get());
}

base::Status Inner::act(const plan::Landlock& step) {
  return as_status(confine::landlock(step.read, step.write));
}

base::Status Inner::act(const plan::DropCapabilities&) {
  // Below gVisor's kernel cerco-init has what is needed there; runsc itself sets up namespaces.
  if (prepared_.gvisor != nullptr) return {};
  // With one uid for all there is nobody to become.
  if (prepared_.own_space) return as_status(confine::start_with(confine::kNone));
  return as_status(confine::start_with(confine::bit(CAP_SETUID) | confine::bit(CAP_SETGID) |
                                       confine::bit(CAP_KILL)));
}

// What the starter made meanwhile: cerco-init, and the user namespace and disk that the plan has.
base::Status Inner::receive_parts() {
  if (init_.open()) return {};
  ReceivedNote parts = TRY(receive_note(ends_.channel));
  const std::size_t expected =
      1U + (prepared_.user_space ? 1U : 0U) + (prepared_.disk_from_outside() ? 1U : 0U);
  if (parts.end || parts.note.kind != NoteKind::parts || parts.count != expected) {
    return base::system_error("start channel", EPROTO);
  }
  std::size_t next = 0;
  init_ = std::move(parts.fds[next++]);
  if (prepared_.user_space) user_space_ = std::move(parts.fds[next++]);
  if (prepared_.disk_from_outside()) disk_ = std::move(parts.fds[next++]);
  return {};
}

base::Status Inner::null_streams() {
  if (root_.open() && !pivoted_) TRY(priv::change_root(badge(), inside_, root_.get()));
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return base::system_error("open /dev/null");
  for (int stream = 0; stream < 3; ++stream) {
    if (::dup2(null, stream) < 0) return base::system_error("dup2");
  }
  if (null > 2) ::close(null);
  return {};
}

base::Status Inner::enter_user_namespace() {
  if (!prepared_.user_space && !prepared_.own_space) return {};
  if (prepared_.user_space) {
    TRY(priv::enter_user_namespace(badge(), inside_, user_space_.get()));
  }
  return priv::forbid_user_namespaces(badge(), inside_, user_limits_.get());
}

// The control channel becomes 3; all else goes with execveat, the start channel last of all, which
// is how the starter learns that all went well.
base::Status Inner::execute() {
  ::umask(022);
  TRY(priv::die_with_parent(badge()));  // forgotten when the uid changed
  char byte = 0;
  if (::recv(ends_.channel, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) ::_exit(125);
  // Both ends lie above kControl, so that dup2 makes a copy, and one that stays open.
  if (::dup2(ends_.control, kControl) < 0) return base::system_error("dup2");
  if (::syscall(SYS_close_range, kControl + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
    return base::system_error("close_range");
  }
  char name[] = "cerco-init";
  char* const argv[] = {name, nullptr};
  char* const env[] = {nullptr};
  ::syscall(SYS_execveat, init_.get(), "", argv, env, AT_EMPTY_PATH);
  return base::system_error("execute cerco-init");
}

base::Status Inner::attach_at(int mount, const std::string& target, Place kind) {
  const base::Fd place =
      TRY(priv::make_place(badge(), inside_, root_.get(), target.c_str(), kind, owner_of(target)));
  return priv::attach(badge(), inside_, mount, place.get());
}

// What lies on the working disk is the workload's, all else is root's.
std::uint32_t Inner::owner_of(const std::string& target) const {
  if (!disk_mounted_) return prepared_.owner;
  const bool on_disk = std::ranges::any_of(prepared_.disk_folders, [&](const DiskFolder& folder) {
    return target.size() > folder.target.size() && target.starts_with(folder.target) &&
           target[folder.target.size()] == '/';
  });
  return on_disk ? prepared_.workload : prepared_.owner;
}

std::uint64_t Inner::base_attributes(const std::string& source) const {
  const bool read_only = prepared_.has(plan::Protection::read_only_base);
  // The host's /dev comes in only where a test took minimal_dev out.
  const bool devices = source == "/dev" && !prepared_.has(plan::Protection::minimal_dev);
  return (devices ? 0 : kNoDev) | (read_only ? kReadOnly | kNoSuid : 0);
}

}  // namespace

void run_inner(const Prepared& prepared, const priv::Inside& inside, const StartEnds& ends) {
  Inner inner(prepared, inside, ends);
  const auto done = inner.start();
  fail_start(ends.channel, done.error());
}

}  // namespace sandbox
