// The start of a microVM: its archive, its box, its machine, and the sandbox inside.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "sandbox/container/rights.h"
#include "sandbox/microvm/archive.h"
#include "sandbox/microvm/microvm.h"
#include "sandbox/microvm/qemu.h"

namespace sandbox {

namespace {

constexpr int kBootMs = 90'000;  // an emulated guest on a busy host takes its time
constexpr std::size_t kMostProgram = std::size_t{64} << 20;
constexpr std::size_t kEntropy = 128;

base::Status add_file(Archive& archive, const std::string& at, const std::string& path,
                      std::uint32_t mode) {
  archive.file(at, TRY(os::read_file(path, kMostProgram)), mode);
  return {};
}

base::Result<std::string> make_archive(const plan::Plan& plan, const Inputs& inputs) {
  Archive archive;
  for (const char* folder : {"dev", "proc", "sys", "root", "modules"}) archive.folder(folder);
  archive.device("dev/console", 5, 1);
  TRY(add_file(archive, "init", plan.helper_dir + "/cerco-guest", 0500));
  TRY(add_file(archive, "cerco-init", inputs.init_path, 0500));
  for (const auto& module : plan.machine->modules) {
    TRY(add_file(archive, "modules/" + module.substr(module.rfind('/') + 1), module, 0400));
  }
  return archive.finish();
}

// What names the files that an archive is made of, as they are now.
base::Result<std::string> name_of_archive(const plan::Plan& plan, const Inputs& inputs) {
  std::vector<std::string> paths = plan.machine->modules;
  paths.push_back(plan.helper_dir + "/cerco-guest");
  paths.push_back(inputs.init_path);
  std::string all;
  for (const auto& path : paths) {
    const base::Fd file = TRY(os::open(path, O_PATH, 0));
    const struct stat about = TRY(os::fstat(file.get(), path));
    all += fmt::format("{} {} {} {} {}\n", path, about.st_ino, about.st_size, about.st_ctim.tv_sec,
                       about.st_ctim.tv_nsec);
  }
  return base::sha256(all).substr(0, 32);
}

// The archive in the state folder, made where there is none: nobody but us writes there, and it
// appears whole or not at all.
base::Result<std::string> archive_file(const plan::Plan& plan, const Inputs& inputs) {
  const std::string folder = plan.state_dir + "/guests";
  TRY(os::own_folder(folder));
  const std::string name = TRY(name_of_archive(plan, inputs)) + ".cpio";
  std::string path = folder + "/" + name;
  if (os::may_access(path, os::Access::exists)) return path;
  const std::string fresh = name + "." + base::random_base32(8);
  {
    const base::Fd file =
        TRY(os::open(folder + "/" + fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444));
    TRY(os::write_all(file.get(), TRY(make_archive(plan, inputs)), "archive"));
  }
  const base::Fd dir = TRY(os::open(folder, O_RDONLY | O_DIRECTORY, 0));
  TRY(os::rename_at(dir.get(), fresh, name));
  return path;
}

// The box with kernel and archive in it.
plan::Plan box_for(const plan::Plan& plan, const std::string& archive) {
  plan::Plan box = plan::box_of(plan);
  const auto dev = std::ranges::find_if(box.steps, [](const plan::Step& step) {
    return std::holds_alternative<plan::MountDev>(step);
  });
  const std::array<plan::Step, 2> more = {plan::BindReadOnly{plan.machine->kernel, kBoxKernel},
                                          plan::BindReadOnly{archive, kBoxArchive}};
  box.steps.insert(dev, more.begin(), more.end());
  return box;
}

// One start. What it holds goes back when it ends early.
class Start {
 public:
  Start(const plan::Plan& plan, const Inputs& inputs) : plan_(plan), inputs_(inputs) {}
  base::Result<std::unique_ptr<Sandbox>> run();

 private:
  base::Status boot();
  base::Status await(GuestSays wanted);
  base::Status launch();

  const plan::Plan& plan_;
  const Inputs& inputs_;
  std::unique_ptr<Sandbox> box_;
  std::unique_ptr<Vmm> vmm_;
  MachineEnds ends_;
};

base::Status Start::boot() {
  const plan::MountDisk* disk = plan::step_of<plan::MountDisk>(plan_);
  if (disk == nullptr) return base::bad_input("MountDisk", "a machine without a disk", {});
  const std::string archive = TRY_IN("guest archive", archive_file(plan_, inputs_));
  const base::Fd base = TRY_IN("base image", os::open(plan_.machine->base, O_RDONLY, 0));
  const plan::Plan box = box_for(plan_, archive);
  box_ = TRY_IN("the VMM's box", start_container(box, {{}, inputs_.init_path}));
  const base::Fd image = TRY_IN(
      "MountDisk", priv::take_image(Rights::badge(), plan_.state_dir, {disk->size, disk->inodes}));
  vmm_ = make_qemu();
  ends_ = TRY(vmm_->boot(*plan_.machine, static_cast<Container&>(*box_), base, image));
  return {};
}

// Until the guest says it, or that something failed, or the VMM has ended.
base::Status Start::await(GuestSays wanted) {
  std::array<pollfd, 2> waiting = {{{ends_.watch.get(), POLLIN, 0}, {vmm_->watch_fd(), POLLIN, 0}}};
  const bool ready = TRY(os::wait_for(waiting, kBootMs));
  if (!ready) {
    return base::fail(base::Kind::peer, "guest",
                      fmt::format("did not answer within {} s", kBootMs / 1000), {});
  }
  if ((waiting[0].revents & POLLIN) == 0) {
    const std::string why = vmm_->ended();
    return base::fail(base::Kind::peer, "guest", why.empty() ? "the VMM's ports closed" : why, {});
  }
  const auto note = read_note(ends_.watch.get(), kBootMs);
  if (!note) {
    const std::string why = vmm_->ended();
    return base::fail(base::Kind::peer, "guest", why.empty() ? note.error().line() : why, {});
  }
  if (note->kind == wanted) return {};
  if (note->kind != GuestSays::failed) return base::system_error("guest", EPROTO);
  return base::system_error("guest: " + base::printable(note->said()),
                            note->number == 0 ? EIO : note->number);
}

base::Status Start::launch() {
  const os::Instant now = os::wall_time();
  GuestLaunch launch;
  launch.plan = base::encode(plan::inside_guest(plan_));
  launch.trust_bundle = inputs_.trust_bundle;
  launch.entropy = base::random_base32(kEntropy);
  launch.seconds = static_cast<std::uint64_t>(now.seconds);
  launch.nanoseconds = static_cast<std::uint64_t>(now.nanoseconds);
  const std::string bytes = base::encode(launch);
  const std::uint64_t size = bytes.size();
  TRY(write_whole(ends_.watch.get(), record_bytes(size), kBootMs));
  return write_whole(ends_.watch.get(), bytes, kBootMs);
}

base::Result<std::unique_ptr<Sandbox>> Start::run() {
  TRY(boot());
  TRY(await(GuestSays::up));
  TRY(launch());
  TRY(await(GuestSays::started));
  tunnel::Started tunnel = TRY(
      tunnel::start(plan_.helper_dir + "/cerco-tunnel", ends_.control.get(), ends_.control.get()));
  return std::make_unique<MicroVm>(std::move(box_), std::move(vmm_), std::move(ends_.watch),
                                   std::move(tunnel));
}

}  // namespace

base::Result<std::unique_ptr<Sandbox>> start_microvm(const plan::Plan& plan, const Inputs& inputs) {
  if (!plan.machine) return base::bad_input("plan", "no machine", {});
  return Start(plan, inputs).run();
}

}  // namespace sandbox
