// A machine up to the moment where it waits for what makes it a sandbox.
#include "sandbox/microvm/boot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "sandbox/container/rights.h"
#include "sandbox/microvm/archive.h"
#include "sandbox/microvm/qemu.h"

namespace sandbox {

namespace {

constexpr std::size_t kMostProgram = std::size_t{64} << 20;

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
  for (const auto& path : paths) all += TRY(identity_of(path));
  return base::sha256(all).substr(0, 32);
}

// The box with kernel and archive in it, and what opens a memory that is a file.
plan::Plan box_for(const plan::Plan& plan, const std::string& archive, Memory memory) {
  plan::Plan box = plan::box_of(plan);
  const auto dev = std::ranges::find_if(box.steps, [](const plan::Step& step) {
    return std::holds_alternative<plan::MountDev>(step);
  });
  std::vector<plan::Step> more = {plan::BindReadOnly{plan.machine->kernel, kBoxKernel},
                                  plan::BindReadOnly{archive, kBoxArchive}};
  if (memory != Memory::own) {
    more.emplace_back(plan::BindReadOnly{plan.helper_dir + kMemoryOpener, kBoxMemoryOpener});
  }
  box.steps.insert(dev, more.begin(), more.end());
  return box;
}

}  // namespace

base::Result<std::string> identity_of(const std::string& path) {
  const base::Fd file = TRY(os::open(path, O_PATH, 0));
  const struct stat about = TRY(os::fstat(file.get(), path));
  return fmt::format("{} {} {} {} {}\n", path, about.st_ino, about.st_size, about.st_ctim.tv_sec,
                     about.st_ctim.tv_nsec);
}

// Nobody but us writes in the state folder, and the archive appears whole or not at all.
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

base::Result<Booted> boot_machine(const plan::Plan& plan, const Inputs& inputs,
                                  const Beginning& beginning) {
  const plan::MountDisk* disk = plan::step_of<plan::MountDisk>(plan);
  if (disk == nullptr) return base::bad_input("MountDisk", "a machine without a disk", {});
  const std::string archive = TRY_IN("guest archive", archive_file(plan, inputs));
  const base::Fd base = TRY_IN("base image", os::open(plan.machine->base, O_RDONLY, 0));
  const plan::Plan box = box_for(plan, archive, beginning.memory);
  Booted booted;
  booted.box = TRY_IN("the VMM's box", start_container(box, {{}, inputs.init_path}));
  const base::Fd image = TRY_IN(
      "MountDisk", priv::take_image(Rights::badge(), plan.state_dir, {disk->size, disk->inodes}));
  booted.vmm = make_qemu();
  booted.ends = TRY(booted.vmm->boot(*plan.machine, static_cast<Container&>(*booted.box), base,
                                     image, beginning));
  return booted;
}

base::Status await(Booted& machine, GuestSays wanted) {
  const int watch = machine.ends.watch.get();
  std::array<pollfd, 2> waiting = {{{watch, POLLIN, 0}, {machine.vmm->watch_fd(), POLLIN, 0}}};
  const bool ready = TRY(os::wait_for(waiting, kBootMs));
  if (!ready) {
    return base::fail(
        base::Kind::peer, "guest",
        fmt::format("did not answer within {} s {}", kBootMs / 1000,
                    wanted == GuestSays::up ? "of booting" : "of setting up the sandbox inside"),
        {});
  }
  if ((waiting[0].revents & POLLIN) == 0) {
    const std::string why = machine.vmm->ended();
    return base::fail(base::Kind::peer, "guest", why.empty() ? "the VMM's ports closed" : why, {});
  }
  const auto note = read_note(watch, kBootMs);
  if (!note) {
    const std::string why = machine.vmm->ended();
    return base::fail(base::Kind::peer, "guest", why.empty() ? note.error().line() : why, {});
  }
  if (note->kind == wanted) return {};
  if (note->kind != GuestSays::failed) return base::system_error("guest", EPROTO);
  return base::system_error("guest: " + base::printable(note->said()),
                            note->number == 0 ? EIO : note->number);
}

}  // namespace sandbox
