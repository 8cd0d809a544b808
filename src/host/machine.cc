// What this host has for the microVM tier.
#include "host/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "os/os.h"

namespace host {
namespace {

constexpr std::array<const char*, 3> kPrograms = {
    "/usr/bin/qemu-system-x86_64", "/usr/local/bin/qemu-system-x86_64", "/usr/libexec/qemu-kvm"};
constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
constexpr std::array<const char*, 2> kFirmware = {"/usr/share/qemu/bios-microvm.bin",
                                                  "/usr/share/seabios/bios-microvm.bin"};
// What some distributions load as modules.
constexpr std::array<const char*, 2> kParts = {"/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
                                               "/usr/lib64/qemu-kvm/accel-tcg-x86_64.so"};
constexpr std::size_t kMostListed = std::size_t{64} << 10;

bool there(const std::string& path) {
  return os::may_access(path, os::Access::read);
}

base::Result<std::string> list_libraries(const std::string& program) {
  auto pipe = TRY(os::pipe());
  const std::array<std::string, 3> argv = {kLoader, "--list", program};
  const std::array<std::pair<int, int>, 1> fds = {std::pair(pipe.second.get(), 1)};
  auto child = TRY(os::spawn(argv, {}, fds));
  pipe.second.reset();
  std::string text;
  while (text.size() < kMostListed) {
    const std::string more = TRY(os::read_some(pipe.first.get(), kMostListed, "ld.so"));
    if (more.empty()) break;
    text += more;
  }
  TRY(child.wait());
  return text;
}

base::Status find_vmm(plan::MachineFacts& facts) {
  const auto program = std::ranges::find_if(kPrograms, there);
  if (program == kPrograms.end() || !there(kLoader)) return {};
  // The links of what is found are followed here: the box has the files, and no links.
  std::set<std::string> files;
  std::vector<std::string> programs = {*program};
  std::ranges::copy_if(kParts, std::back_inserter(programs), there);
  for (const auto& one : programs) {
    files.insert(one);
    for (const auto& path : listed_libraries(TRY(list_libraries(one)))) files.insert(path);
  }
  files.insert(kLoader);
  const auto firmware = std::ranges::find_if(kFirmware, there);
  if (firmware == kFirmware.end()) return {};
  files.insert(*firmware);
  facts.vmm = *program;
  facts.vmm_files.assign(files.begin(), files.end());
  return {};
}

void find_guest(const std::string& helper_dir, plan::MachineFacts& facts) {
  const std::string folder = helper_dir + "/guest";
  const auto modules = os::list_folder(folder + "/modules");
  if (!modules || !there(folder + "/vmlinuz") || !there(helper_dir + "/cerco-guest")) return;
  facts.kernel = folder + "/vmlinuz";
  for (const auto& name : *modules) facts.modules.push_back(folder + "/modules/" + name);
}

// The folders and links of a base, as gather() finds the host's.
void base_of(const std::string& folder, plan::HostFacts& facts) {
  facts.base.clear();
  facts.etc_binds.clear();
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    const os::PathKind kind = os::path_kind(folder + path);
    if (kind == os::PathKind::folder) facts.base[path] = "dir";
    if (kind != os::PathKind::link) continue;
    if (auto text = os::read_link(folder + path)) facts.base[path] = "link:" + *text;
  }
  const auto names = os::list_folder(folder + "/etc");
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    const std::string path = "/etc/" + name;
    const os::PathKind kind = os::path_kind(folder + path);
    const bool plain = kind == os::PathKind::folder || kind == os::PathKind::file;
    if (plain && plan::is_curated_etc(path)) facts.etc_binds[path] = path;
  }
}

}  // namespace

std::vector<std::string> listed_libraries(std::string_view text) {
  std::vector<std::string> paths;
  for (const std::string_view line : base::split(text, '\n')) {
    // "\tNAME => PATH (0x…)" or "\tPATH (0x…)"; the kernel's own has no path.
    const std::size_t at = line.find('/');
    const std::size_t end = line.rfind(" (0x");
    const std::size_t arrow = line.find("=> ");
    const std::size_t from = arrow == std::string_view::npos ? at : arrow + 3;
    if (from >= line.size() || line[from] != '/' || end == std::string_view::npos || end < from) {
      continue;
    }
    paths.emplace_back(line.substr(from, end - from));
  }
  return paths;
}

bool may_take_machine(const policy::Policy& policy, const plan::HostFacts& facts) {
  if (policy.isolation.tier) return *policy.isolation.tier == policy::Tier::microvm;
  const auto image = image_of_host(facts.state_dir);
  return facts.root && policy.filesystem.base.kind == policy::BaseKind::host && image &&
         !image->empty() && os::may_access("/dev/kvm", os::Access::write);
}

base::Status look_for_machine(const policy::Policy& policy, plan::HostFacts& facts) {
  plan::MachineFacts& machine = facts.machine;
  machine.asked = true;
  TRY(find_vmm(machine));
  find_guest(facts.helper_dir, machine);
  machine.tun = os::may_access("/dev/net/tun", os::Access::write);
  machine.kvm_lack = known_kvm_lack(facts.state_dir);
  if (!machine.kvm_lack.empty()) machine.tsc_khz = measure_tsc_khz();
  const policy::Base& base = policy.filesystem.base;
  if (base.kind == policy::BaseKind::dir) {
    machine.base_image = TRY(image_of_folder(base.name, facts.state_dir));
    base_of(base.name, facts);
  } else {
    machine.base_image = TRY(image_of_host(facts.state_dir));
  }
  return {};
}

}  // namespace host
