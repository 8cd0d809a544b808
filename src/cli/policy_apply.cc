// `cerco policy apply`: another policy for a run that lives, from its next request on.
#include <fmt/format.h>

#include <array>

#include "cli/living.h"
#include "cli/presets.h"
#include "cli/run_policy.h"

namespace cli {
namespace {

// The place in the file of a key that cannot change, "" where the file does not name it.
std::string place_of(const policy::Effective& effective, std::string key) {
  while (!key.empty()) {
    const auto found = effective.origins.find(key);
    if (found != effective.origins.end() && found->second != "default") return found->second;
    const auto cut = key.find_last_of(".[");
    key.resize(cut == std::string::npos ? 0 : cut);
  }
  return {};
}

base::Result<int> tell_refusal(const World& world, const policy::Effective& effective,
                               const supervisor::StartFailed& failed, const std::string& file) {
  constexpr std::uint32_t kNo = 1;
  if (failed.status != kNo) {
    return base::fail(base::Kind::system, "policy apply", failed.message, {});
  }
  const std::string place = place_of(effective, failed.ending.step);
  print_error(world, fmt::format("cerco: {}: {}\n", base::printable(place.empty() ? file : place),
                                 base::printable(failed.message)));
  return 1;
}

}  // namespace

base::Result<int> policy_apply(const World& world, const Parsed& parsed) {
  TRY(want_words("policy apply", parsed, 2, "RUN FILE"));
  const std::string& run = parsed.words[0];
  const std::string& file = parsed.words[1];
  const std::string text = TRY(read_policy_file(file, file));
  const Reached asked = TRY(reach(world, run));
  const policy::Policy running = TRY(policy_in_force(asked.channel));
  policy::Effective effective =
      TRY(policy::parse_change(text, file, running, preset_source(world)));
  TRY(resolve_read_only(effective.policy));
  for (const std::string& warning : effective.warnings) {
    print_error(world, "cerco: " + base::printable(warning) + "\n");
  }
  const base::Fd memfd = TRY(os::sealed_memfd("cerco-policy", base::encode(effective.policy)));
  const std::array<int, 1> fds = {memfd.get()};
  const Reached reached = TRY(reach(world, asked.run.id));
  TRY(ask(reached.channel, supervisor::ApplyPolicy{running.revision}, fds));
  const auto answer = TRY(hear(reached.channel));
  if (const auto* failed = std::get_if<supervisor::StartFailed>(&answer)) {
    return tell_refusal(world, effective, *failed, file);
  }
  const auto* changed = std::get_if<supervisor::PolicyChanged>(&answer);
  if (changed == nullptr) {
    return base::fail(base::Kind::peer, "supervisor", "answered something else", {});
  }
  if (parsed.has("--json")) {
    print(world, base::JsonObject()
                         .add("run", asked.run.id)
                         .add("policy", changed->revision)
                         .add("policy_sha256", changed->policy_sha256)
                         .raw("revoked", base::json_strings(changed->retired))
                         .text() +
                     "\n");
    return 0;
  }
  print(world, fmt::format("policy {} is in force\n", changed->revision));
  for (const std::string& name : changed->retired) {
    print(world, fmt::format("credential {} is revoked: {} leaves it out\n", base::printable(name),
                             base::printable(file)));
  }
  return 0;
}

}  // namespace cli
