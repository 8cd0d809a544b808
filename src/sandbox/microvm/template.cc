// Where templates lie, and how a copy starts.
#include "sandbox/microvm/template.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "sandbox/microvm/template_files.h"

namespace sandbox {

namespace {

// Changes with what a guest does before it waits, or with the form of the files.
constexpr std::string_view kForm = "cerco template 1";
constexpr std::size_t kSerial = 16;
constexpr std::size_t kDigest = 64;
constexpr std::size_t kMostNote = 256;
constexpr std::uint64_t kClockParts = 200;  // as far as two measurements of one clock may lie apart
constexpr std::string_view kAgain = "remove it and run cerco image warm";

// The host's processor, as far as a guest has seen it.
base::Result<std::string> processor() {
  static constexpr std::array<std::string_view, 7> kTold = {
      "vendor_id", "cpu family", "model", "model name", "stepping", "microcode", "flags"};
  const std::string text = TRY(os::read_file("/proc/cpuinfo", std::size_t{1} << 20));
  std::string told;
  for (const std::string_view line : base::split(text.substr(0, text.find("\n\n")), '\n')) {
    const std::string_view key = line.substr(0, line.find_first_of("\t:"));
    if (std::ranges::find(kTold, key) != kTold.end()) told += std::string(line) + "\n";
  }
  return told;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_serial(std::string_view text) {
  return text.size() == kSerial &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == std::string_view::npos;
}

base::Status whole(const std::string& path, const struct stat& about, std::uint64_t size) {
  const bool ours = S_ISREG(about.st_mode) && about.st_uid == ::geteuid() && about.st_nlink == 1 &&
                    (about.st_mode & 07777) == 0600;
  if (!ours) {
    return base::bad_input(path, "a file of another owner or mode than this program gives it",
                           std::string(kAgain));
  }
  if (static_cast<std::uint64_t>(about.st_size) != size) {
    return base::bad_input(path, fmt::format("{} bytes", about.st_size),
                           fmt::format("{}, or {}", size, kAgain));
  }
  return {};
}

base::Result<base::Fd> open_whole(const std::string& path, std::uint64_t size) {
  base::Fd file = TRY(os::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  TRY(whole(path, TRY(os::fstat(file.get(), path)), size));
  return file;
}

base::Result<std::string> read_note(const std::string& path) {
  const base::Fd file = TRY(os::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
  const struct stat about = TRY(os::fstat(file.get(), path));
  TRY(whole(path, about, static_cast<std::uint64_t>(about.st_size)));
  return os::read_all(file.get(), kMostNote, path);
}

}  // namespace

std::string note_text(const TemplateNote& note) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", kForm, note.serial, note.made, note.tsc_khz,
                     note.devices_size, note.devices_sha256);
}

base::Result<TemplateNote> parse_note(std::string_view text) {
  const auto lines = base::split(text, '\n');
  const auto wrong = [] {
    return base::bad_input("about", "not a template of this program", std::string(kAgain));
  };
  if (lines.size() != 7 || lines[0] != kForm || !lines[6].empty()) return wrong();
  const auto made = base::parse_number(lines[2]);
  const auto speed = base::parse_number(lines[3]);
  const auto size = base::parse_number(lines[4]);
  if (!is_serial(lines[1]) || !made || !speed || !size || *size > kMostDevices ||
      lines[5].size() != kDigest || !is_hex(lines[5])) {
    return wrong();
  }
  return TemplateNote{std::string(lines[1]), *made, *speed, *size, std::string(lines[5])};
}

bool is_current(const TemplateNote& note, std::uint64_t now, std::uint64_t tsc_khz) {
  if (now < note.made || now - note.made > kTemplateSeconds) return false;
  const auto [less, more] = std::minmax(note.tsc_khz, tsc_khz);
  return more - less <= more / kClockParts;
}

base::Result<std::string> templates_folder(const plan::Plan& plan) {
  std::string folder = plan.state_dir + "/templates";
  TRY(os::own_folder(folder));
  return folder;
}

base::Result<std::string> template_name(const plan::Plan& plan, const Inputs& inputs) {
  const plan::Machine& machine = *plan.machine;
  const plan::MountDisk* disk = plan::step_of<plan::MountDisk>(plan);
  if (disk == nullptr) return base::bad_input("MountDisk", "a machine without a disk", {});
  // The machine as it is built, but for the clock's speed, which is_current() judges.
  plan::Machine built = machine;
  built.tsc_khz = 0;
  std::string all = fmt::format("{}\n{}\n{}\n{}\n{}", kForm,
                                base::join(qemu_arguments(built, Memory::restored), "\n"),
                                disk->size, os::kernel_release(), TRY(processor()));
  std::vector<std::string> paths = machine.files;
  paths.insert(paths.end(), {machine.kernel, machine.base, TRY(archive_file(plan, inputs)),
                             plan.helper_dir + kMemoryOpener});
  for (const auto& path : paths) all += TRY(identity_of(path));
  return base::sha256(all).substr(0, 32);
}

base::Result<std::optional<Template>> find_template(const plan::Plan& plan, const Inputs& inputs) {
  const std::string folder = TRY(templates_folder(plan));
  const std::string path = folder + "/" + TRY(template_name(plan, inputs));
  const auto text = read_note(path + ".about");
  if (!text && text.error().number == ENOENT) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  const TemplateNote note = TRY_IN(path, parse_note(*text));
  const auto now = static_cast<std::uint64_t>(os::wall_time().seconds);
  if (!is_current(note, now, plan.machine->tsc_khz)) return std::nullopt;
  Template kept;
  kept.memory = TRY(open_whole(memory_path(path, note.serial), plan.machine->memory));
  kept.devices = TRY(open_whole(devices_path(path, note.serial), note.devices_size));
  const std::string state = TRY(os::read_all(kept.devices.get(), kMostDevices, "devices"));
  if (base::sha256(state) != note.devices_sha256) {
    return base::bad_input(devices_path(path, note.serial), "not what was written",
                           std::string(kAgain));
  }
  return kept;
}

base::Result<Booted> restore(const plan::Plan& plan, const Inputs& inputs, Template& kept) {
  return boot_machine(plan, inputs,
                      {Memory::restored, std::move(kept.memory), std::move(kept.devices)});
}

}  // namespace sandbox
