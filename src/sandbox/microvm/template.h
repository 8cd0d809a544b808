// A template: a guest that was stopped before anything of a task was in it, kept as files, of which
// starts make copies.
//
// It lies below the state folder as templates/NAME.about, where NAME is the digest of all that it
// depends on (kernel, VMM, base image, our own programs, the machine's size, the host's processor),
// and NAME.SERIAL.memory and NAME.SERIAL.devices, which that file names.
#pragma once

#include <optional>
#include <string>

#include "sandbox/microvm/boot.h"

namespace sandbox {

inline constexpr std::uint64_t kMostDevices = std::uint64_t{64} << 20;
inline constexpr std::int64_t kTemplateSeconds = std::int64_t{7} * 24 * 3600;

// What is said of a template beside its memory and devices: the file `about`.
struct TemplateNote {
  std::string serial;
  std::uint64_t made = 0;  // seconds since 1970
  std::uint64_t tsc_khz = 0;
  std::uint64_t devices_size = 0;
  std::string devices_sha256;
  bool operator==(const TemplateNote&) const = default;
};
// One line each behind one that names the form.
[[nodiscard]] std::string note_text(const TemplateNote& note);
// bad_input for anything that note_text() does not give.
[[nodiscard]] base::Result<TemplateNote> parse_note(std::string_view text);

// Whether a copy may start from it now: it is at most a week old, since all copies have the places
// in memory of one kernel in common, and the clock's speed is still what it was.
[[nodiscard]] bool is_current(const TemplateNote& note, std::uint64_t now, std::uint64_t tsc_khz);

struct Template {
  base::Fd memory;  // for reading alone
  base::Fd devices;
};

// The template of such a plan, checked; nothing where there is none that is current. bad_input that
// names the file where one is not what this program writes: another owner, mode, size or content.
[[nodiscard]] base::Result<std::optional<Template>> find_template(const plan::Plan& plan,
                                                                  const Inputs& inputs);
// A copy that runs and waits for its launch.
[[nodiscard]] base::Result<Booted> restore(const plan::Plan& plan, const Inputs& inputs,
                                           Template& kept);

}  // namespace sandbox
