// Reads the secrets of the policy's credentials and hands them on as sealed memory.
#include "cli/secrets.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <array>

#include "cli/executables.h"
#include "os/os.h"
#include "policy/upstream_proxy.h"

namespace cli {
namespace {

constexpr std::size_t kMaxSecret = std::size_t{64} * 1024;
constexpr std::int64_t kCommandMs = 30'000;

std::string where(const policy::Credential& credential) {
  return "credential " + base::printable(credential.name);
}

base::Result<std::string> from_env(const World& world, const policy::Credential& credential) {
  const auto at = world.env.find(credential.source.name);
  if (at != world.env.end()) return at->second;
  return base::bad_input(where(credential),
                         "the variable " + base::printable(credential.source.name) + " is not set",
                         "set it where cerco is called");
}

// A link may lead to it (mounted secrets are links); what counts is the file that is open.
base::Result<std::string> from_file(const policy::Credential& credential, const std::string& path) {
  const std::string at = where(credential) + ": " + base::printable(path);
  const base::Fd fd =
      TRY_IN(where(credential), os::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0));
  const auto status = TRY(os::fstat(fd.get(), path));
  if (!S_ISREG(status.st_mode)) return base::bad_input(at, "is no regular file", {});
  const bool of_root = status.st_uid == 0;
  if (!of_root && status.st_uid != os::effective_uid()) {
    return base::bad_input(at, "belongs to another user", "expected a file of your own or root's");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return base::bad_input(at, "others may use it too", "chmod 0600 it");
  }
  // One read, so that no copy of a part stays behind.
  return TRY_IN(where(credential), os::read_some(fd.get(), kMaxSecret + 3, path));
}

// The folder that systemd made for the service which cerco runs in (systemd.exec(5), Credentials).
base::Result<std::string> from_systemd(const World& world, const policy::Credential& credential) {
  const auto folder = world.env.find("CREDENTIALS_DIRECTORY");
  if (folder == world.env.end() || !folder->second.starts_with('/')) {
    return base::bad_input(where(credential), "CREDENTIALS_DIRECTORY names no folder",
                           "LoadCredential=" + base::printable(credential.source.name) +
                               ":PATH in the service that calls cerco");
  }
  return from_file(credential, folder->second + "/" + credential.source.name);
}

std::vector<std::string> environment_of(const World& world) {
  std::vector<std::string> all;
  for (const auto& [name, value] : world.env) all.push_back(name + "=" + value);
  return all;
}

// Its output until it closes it, within the time. The bytes are wiped on every way out but the
// last.
base::Result<std::string> output_of(int pipe, const std::string& at) {
  std::string bytes;
  const os::Instant start = os::steady_time();
  while (true) {
    const std::int64_t spent = (os::steady_time().seconds - start.seconds) * 1000;
    std::array<pollfd, 1> polled = {{{pipe, POLLIN, 0}}};
    const bool any =
        spent < kCommandMs && TRY(os::wait_for(polled, static_cast<int>(kCommandMs - spent)));
    std::string part = any ? TRY(os::read_some(pipe, kMaxSecret, at)) : std::string();
    const bool too_much = bytes.size() + part.size() > kMaxSecret;
    if (any && part.empty()) return bytes;
    if (!any || too_much) {
      base::wipe(bytes);
      base::wipe(part);
      return base::bad_input(at, any ? "wrote more than 64 KiB" : "did not end in 30 s", {});
    }
    std::string longer = bytes + part;  // no growth that leaves a copy behind
    base::wipe(bytes);
    base::wipe(part);
    bytes = std::move(longer);
  }
}

base::Result<std::string> from_command(const World& world, const policy::Credential& credential) {
  std::vector<std::string> argv = credential.source.command;
  const std::string at = where(credential) + ": " + base::printable(argv.at(0));
  const auto path = find_executable(argv[0], path_of(world));
  if (path.empty()) return base::bad_input(at, "command not found", {});
  argv[0] = path;
  auto [reader, writer] = TRY(os::pipe());
  const std::array<std::pair<int, int>, 1> pairs = {{{writer.get(), 1}}};
  os::Child child = TRY_IN(where(credential), os::spawn(argv, environment_of(world), pairs));
  writer.reset();
  std::string bytes = TRY(output_of(reader.get(), at));
  const int status = TRY(child.wait());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return bytes;
  base::wipe(bytes);
  return base::bad_input(at,
                         WIFEXITED(status)
                             ? "ended with status " + std::to_string(WEXITSTATUS(status))
                             : "was ended by signal " + std::to_string(WTERMSIG(status)),
                         "expected status 0 and the secret on its standard output");
}

base::Result<std::string> read_secret(const World& world, const policy::Credential& credential) {
  switch (credential.source.kind) {
    case policy::SourceKind::env:
      return from_env(world, credential);
    case policy::SourceKind::file:
      return from_file(credential, credential.source.name);
    case policy::SourceKind::command:
      return from_command(world, credential);
    case policy::SourceKind::systemd:
      return from_systemd(world, credential);
  }
  return base::not_yet(where(credential) + ": source");
}

std::string_view line_of(std::string_view secret) {
  if (secret.ends_with('\n')) secret.remove_suffix(1);
  if (secret.ends_with('\r')) secret.remove_suffix(1);
  return secret;
}

base::Result<base::Fd> seal(const policy::Credential& credential, std::string& secret) {
  const std::string_view text = line_of(secret);
  if (text.empty()) return base::bad_input(where(credential), "the secret is empty", {});
  if (text.size() > kMaxSecret) {
    return base::bad_input(where(credential), "the secret is longer than 64 KiB", {});
  }
  if (!policy::takes_lines(credential) &&
      text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    return base::bad_input(where(credential), "the secret has more than one line", {});
  }
  return os::sealed_memfd("cerco-secret", text);
}

// Within longer values only what is long enough not to stand there by chance.
constexpr std::size_t kLeastWithin = 8;

bool holds(std::string_view value, std::string_view secret) {
  return value == secret || (secret.size() >= kLeastWithin && value.contains(secret));
}

// A secret that also comes in by an ordinary variable is no secret to the code inside.
base::Status check_not_let_in(const World& world, const policy::Policy& policy,
                              const policy::Credential& credential, std::string_view secret) {
  const auto check = [&](const std::string& name, std::string_view value) -> base::Status {
    if (!holds(value, secret)) return {};
    return base::bad_input(
        where(credential), "the variable " + base::printable(name) + " holds its secret as well",
        "leave " + base::printable(name) + " out of environment.set, environment.pass and --env");
  };
  for (const auto& [name, value] : policy.environment.set) TRY(check(name, value));
  for (const std::string& name : policy.environment.pass) {
    const auto at = world.env.find(name);
    if (at != world.env.end()) TRY(check(name, at->second));
  }
  return {};
}

}  // namespace

base::Result<base::Fd> open_secret(const World& world, const policy::Policy& policy,
                                   const std::string& name, const policy::Source& source) {
  policy::Credential credential;
  credential.name = name;
  credential.source = source;
  std::string secret = TRY(read_secret(world, credential));
  auto sealed = seal(credential, secret);
  const auto apart =
      sealed ? check_not_let_in(world, policy, credential, line_of(secret)) : base::Status();
  base::wipe(secret);
  TRY(apart);
  return sealed;
}

base::Result<std::vector<base::Fd>> open_secrets(const World& world, const policy::Policy& policy) {
  std::vector<base::Fd> all;
  for (const policy::Credential& credential : policy.credentials) {
    std::string secret = TRY(read_secret(world, credential));
    auto sealed = seal(credential, secret);
    const auto apart =
        sealed ? check_not_let_in(world, policy, credential, line_of(secret)) : base::Status();
    base::wipe(secret);
    TRY(apart);
    all.push_back(TRY(std::move(sealed)));
  }
  if (const auto source = policy::proxy_password(policy.network.upstream_proxy)) {
    all.push_back(TRY(open_secret(world, policy, "network.upstream_proxy", *source)));
  }
  return all;
}

}  // namespace cli
