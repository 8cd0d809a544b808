// What gVisor's runsc says of itself.
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>

#include "host/host.h"
#include "host/known.h"
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

// Changes with the program; "" where it cannot be seen.
std::string identity_of(const std::string& program) {
  struct stat about = {};
  if (::stat(program.c_str(), &about) != 0) return {};
  return fmt::format("{} {} {} {} {}.{}\n", program, about.st_dev, about.st_ino, about.st_size,
                     about.st_ctim.tv_sec, about.st_ctim.tv_nsec);
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
  // Two programs of some 20 ms each, at every start: asked once a runsc.
  const std::string key = identity_of(facts.runsc);
  const std::string name = "runsc-says";
  if (const auto said = key.empty() ? std::nullopt : known(facts.state_dir, name, key)) {
    const std::size_t at = said->find('\n');
    facts.runsc_platform = said->substr(0, at);
    facts.runsc_release = at == std::string::npos ? "unknown" : said->substr(at + 1);
  } else {
    facts.runsc_platform = platform_in(TRY(ask(facts.runsc, "flags")));
    facts.runsc_release = release_in(TRY(ask(facts.runsc, "--version")));
    if (!key.empty() && !facts.runsc_platform.empty()) {
      keep(facts.state_dir, name, key, facts.runsc_platform + "\n" + facts.runsc_release);
    }
  }
  if (!facts.runsc_platform.empty()) return {};
  return base::fail(base::Kind::missing, facts.runsc, "has neither systrap nor ptrace",
                    "a release of gVisor with one of them");
}

}  // namespace host
