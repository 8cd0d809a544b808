// What gVisor's runsc says of itself.
#include <array>

#include "host/host.h"
#include "os/os.h"

namespace host {
namespace {

constexpr std::size_t kMostText = 256ULL << 10;

base::Result<std::string> ask(const std::string& program, const std::string& word) {
  auto [reads, writes] = TRY(os::pipe());
  const std::array<std::string, 2> argv = {program, word};
  const std::array<std::pair<int, int>, 2> fds = {std::pair(writes.get(), 1),
                                                  std::pair(writes.get(), 2)};
  os::Child child = TRY_IN("runsc", os::spawn(argv, {}, fds));
  writes.reset();
  std::string text = TRY_IN("runsc", os::read_all(reads.get(), kMostText, "runsc"));
  TRY_IN("runsc", child.wait());
  return text;
}

}  // namespace

std::string platform_in(std::string_view flags) {
  const std::size_t at = flags.find("-platform string");
  if (at == std::string_view::npos) return {};
  const std::string_view about = flags.substr(at, flags.find("\n  -", at) - at);
  for (const char* platform : {"systrap", "ptrace"}) {
    if (about.contains(platform)) return platform;
  }
  return {};
}

std::string release_in(std::string_view version) {
  constexpr std::string_view kBefore = "runsc version ";
  if (!version.starts_with(kBefore)) return "unknown";
  version.remove_prefix(kBefore.size());
  return base::printable(version.substr(0, version.find('\n')));
}

base::Status ask_runsc(plan::HostFacts& facts) {
  if (facts.runsc.empty()) return {};
  facts.runsc_platform = platform_in(TRY(ask(facts.runsc, "flags")));
  facts.runsc_release = release_in(TRY(ask(facts.runsc, "--version")));
  if (!facts.runsc_platform.empty()) return {};
  return base::fail(base::Kind::missing, facts.runsc, "has neither systrap nor ptrace",
                    "a release of gVisor with one of them");
}

}  // namespace host
