// What this host has for the microVM tier.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
namespace host {

// Fills facts.machine, and for filesystem.base = "dir:PATH" also facts.base and facts.etc_binds,
// which are then that folder's. Starts programs (the dynamic linker, to name QEMU's libraries;
// mkfs.erofs, where a folder has no image yet; a guest of a few bytes on /dev/kvm), and so is asked
// only where the tier may be taken. Errors: bad_input for a base that is none, system and missing
// where its image cannot be made.
[[nodiscard]] base::Status look_for_machine(const policy::Policy& policy, plan::HostFacts& facts);

// Whether a plan for the policy may have a machine: it names the tier, or leaves it to `auto` on a
// host where all that takes long is there. Looks at few files.
[[nodiscard]] bool may_take_machine(const policy::Policy& policy, const plan::HostFacts& facts);

// The paths that `ld.so --list` names, the loader's own with them. Pure.
[[nodiscard]] std::vector<std::string> listed_libraries(std::string_view text);

// Why no guest runs on /dev/kvm; "" where one did, within the budget. A guest of a few bytes enters
// ring 0 with paging off, adds two numbers and tells the sum: there are hosts whose /dev/kvm opens
// and whose guests never get that far.
[[nodiscard]] std::string probe_kvm();
// The same; a lack is kept below `state_dir` for as long as the host runs.
[[nodiscard]] std::string known_kvm_lack(const std::string& state_dir);

// How fast the time-stamp counter runs, in kHz, measured over some milliseconds; 0: there is none.
[[nodiscard]] std::uint64_t measure_tsc_khz();

// --- base_image.cc -------------------------------------------------------------------------------

// The image of a folder as it is now, below `state_dir`/images; made where there is none.
[[nodiscard]] base::Result<std::string> image_of_folder(const std::string& folder,
                                                        const std::string& state_dir);
// That of the host's own base, "" where `cerco image warm host` has not made one since its packages
// last changed.
[[nodiscard]] base::Result<std::string> image_of_host(const std::string& state_dir);
// Makes it, of the folders of facts.base and the curated pieces of /etc alone; its path.
[[nodiscard]] base::Result<std::string> make_image_of_host(const plan::HostFacts& facts);

}  // namespace host
