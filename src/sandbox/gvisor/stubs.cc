// Whether somebody killed a process that gVisor's kernel runs code in.
#include "sandbox/gvisor/stubs.h"

#include <fmt/format.h>

#include <charconv>

#include "os/os.h"

namespace sandbox::gvisor {

namespace {

constexpr std::size_t kMostStatus = 8192;
constexpr std::uint64_t kKillBit = 1U << 8U;  // of SIGKILL, 9, in a mask of signals

// What stands behind "KEY:\t".
std::string_view told(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = status.substr(at + key.size());
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

bool is_dying(std::string_view status) {
  if (told(status, "\nState:\t").starts_with("Z")) return true;
  for (const char* key : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    const std::string_view text = told(status, key);
    std::uint64_t mask = 0;
    std::from_chars(text.data(), text.data() + text.size(), mask, 16);
    if ((mask & kKillBit) != 0) return true;
  }
  return false;
}

std::uint64_t Stubs::look(std::string_view processes, std::string_view proc) {
  std::set<std::uint64_t> dying;
  std::uint64_t stuck = 0;
  for (const std::string_view line : base::split(processes, '\n')) {
    const std::uint64_t pid = base::parse_number(line).value_or(0);
    if (pid == 0) continue;
    const auto status = os::read_file(fmt::format("{}/{}/status", proc, pid), kMostStatus);
    if (!status || !is_dying(*status)) continue;
    if (dying_.contains(pid)) stuck = pid;
    dying.insert(pid);
  }
  dying_ = std::move(dying);
  return stuck;
}

}  // namespace sandbox::gvisor
