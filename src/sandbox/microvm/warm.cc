// The making of a template: one boot, one recording, one copy that has to answer.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>

#include <array>
#include <cerrno>

#include "sandbox/microvm/template_files.h"

namespace sandbox {

namespace {

constexpr int kRecordMs = 30'000;
constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::chrono::minutes kMostMaking{5};

base::Result<base::Fd> fresh_file(const std::string& path) {
  return os::open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

// All that comes out of the pipe; not a byte of it is looked at.
base::Result<std::string> drain(const base::Fd& pipe) {
  std::string all;
  while (true) {
    std::array<pollfd, 1> waiting = {{{pipe.get(), POLLIN, 0}}};
    if (!TRY(os::wait_for(waiting, kRecordMs))) return base::system_error("devices", ETIMEDOUT);
    const std::string more = TRY(os::read_some(pipe.get(), kPiece, "devices"));
    if (more.empty()) break;
    all += more;
    if (all.size() > kMostDevices) return base::system_error("devices", EFBIG);
  }
  if (all.empty()) return base::system_error("devices", ENODATA);
  return all;
}

// A boot whose memory is `memory`, up to where it waits; the state of its devices then.
base::Result<std::string> boot_and_record(const plan::Plan& plan, const Inputs& inputs,
                                          const base::Fd& memory) {
  TRY(os::truncate(memory.get(), plan.machine->memory, "memory"));
  Booted machine =
      TRY(boot_machine(plan, inputs, {Memory::recorded, TRY(os::duplicate(memory.get())), {}}));
  TRY(await(machine, GuestSays::up));
  const base::Fd pipe = TRY(machine.vmm->record());
  return drain(pipe);
}

// Whether a copy runs: it is asked once, and told nothing.
base::Status try_copy(const plan::Plan& plan, const Inputs& inputs, const std::string& path,
                      const std::string& serial) {
  Template kept;
  kept.memory = TRY(os::open(memory_path(path, serial), O_RDONLY, 0));
  kept.devices = TRY(os::open(devices_path(path, serial), O_RDONLY, 0));
  Booted copy = TRY(restore(plan, inputs, kept));
  constexpr std::uint64_t kQuestion = 0;
  TRY(write_whole(copy.ends.watch.get(), record_bytes(kQuestion), kRecordMs));
  return await(copy, GuestSays::up);
}

// Whatever no `about` that is current names: what a making that was killed left, and what is old.
void tidy(const std::string& folder, std::uint64_t now) {
  const auto names = os::list_folder(folder);
  const auto dir = os::open(folder, O_RDONLY | O_DIRECTORY, 0);
  if (!names || !dir) return;
  std::vector<std::string> named = {"lock"};
  for (const auto& name : *names) {
    if (!name.ends_with(".about")) continue;
    const auto text = os::read_file(folder + "/" + name, 4096);
    const auto note =
        text ? parse_note(*text) : base::Result<TemplateNote>(base::bad_input(name, "", {}));
    if (!note || !is_current(*note, now, note->tsc_khz)) continue;
    const std::string begin = name.substr(0, name.rfind('.'));
    named.insert(named.end(),
                 {name, memory_path(begin, note->serial), devices_path(begin, note->serial)});
  }
  for (const auto& name : *names) {
    if (std::ranges::find(named, name) == named.end()) (void)os::remove_at(dir->get(), name);
  }
}

base::Status make(const plan::Plan& plan, const Inputs& inputs, const std::string& folder,
                  const std::string& name) {
  const std::string path = folder + "/" + name;
  TemplateNote note;
  note.serial = base::random_base32(16);
  note.tsc_khz = plan.machine->tsc_khz;
  const base::Fd memory = TRY(fresh_file(memory_path(path, note.serial)));
  const base::Fd devices = TRY(fresh_file(devices_path(path, note.serial)));
  const std::string state = TRY(boot_and_record(plan, inputs, memory));
  TRY(os::write_all(devices.get(), state, "devices"));
  TRY_IN("a copy", try_copy(plan, inputs, path, note.serial));
  TRY(os::sync_data(memory.get(), "memory"));
  TRY(os::sync_data(devices.get(), "devices"));
  note.made = static_cast<std::uint64_t>(os::wall_time().seconds);
  note.devices_size = state.size();
  note.devices_sha256 = base::sha256(state);
  const std::string fresh = name + ".new";
  const base::Fd about = TRY(fresh_file(folder + "/" + fresh));
  TRY(os::write_all(about.get(), note_text(note), "about"));
  TRY(os::sync_data(about.get(), "about"));
  const base::Fd dir = TRY(os::open(folder, O_RDONLY | O_DIRECTORY, 0));
  return os::rename_at(dir.get(), fresh, name + ".about");
}

}  // namespace

base::Result<std::string> warm_microvm(const plan::Plan& plan, const Inputs& inputs) {
  if (!plan.machine) return base::bad_input("plan", "no machine", {});
  const std::string folder = TRY(templates_folder(plan));
  const base::Fd held = TRY(os::open(folder + "/lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  const auto lock = TRY(os::FileLock::take_within(held.get(), "templates", kMostMaking));
  const std::string name = TRY(template_name(plan, inputs));
  std::string about = folder + "/" + name + ".about";
  // One that is damaged is made anew.
  const auto found = find_template(plan, inputs);
  if (found && found->has_value()) return about;
  const auto made = make(plan, inputs, folder, name);
  tidy(folder, static_cast<std::uint64_t>(os::wall_time().seconds));
  if (!made) return std::unexpected(made.error());
  return about;
}

}  // namespace sandbox
