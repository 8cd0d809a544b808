// The flags that shape the policy, shared by every subcommand that has one, and the plan that comes
// of it.
#include <algorithm>
#include <cerrno>

#include "cli/cli.h"
#include "cli/delegated.h"
#include "cli/presets.h"
#include "host/host.h"
#include "host/machine.h"
#include "os/caller.h"
#include "os/os.h"
#include "workspace/workspace.h"

namespace cli {
namespace {

constexpr std::size_t kMaxPolicy = 1 << 20;

// `--tier`, `--set`, … as changes in the order in which they were given.
std::vector<policy::Override> overrides(const Parsed& parsed) {
  std::vector<policy::Override> all;
  for (const auto& [flag, value] : parsed.flags) {
    if (flag == "--set") all.push_back({policy::OverrideKind::set, value});
    if (flag == "--allow") all.push_back({policy::OverrideKind::allow, value});
    if (flag == "--env") all.push_back({policy::OverrideKind::env, value});
    if (flag == "--timeout") all.push_back({policy::OverrideKind::timeout, value});
    if (flag == "--tier") {
      all.push_back({policy::OverrideKind::set, "isolation.tier=" + base::json_string(value)});
    }
  }
  return all;
}

base::Result<std::string> resolved(const std::string& path, const std::string& where) {
  auto real = os::real_path(path);
  if (real) return real;
  base::Error error = std::move(real).error();
  error.kind = base::Kind::bad_input;
  error.where = where + " " + base::printable(path);
  error.expected = "expected a file or folder of this host";
  return std::unexpected(std::move(error));
}

}  // namespace

base::Result<std::string> read_policy_file(const std::string& file, std::string_view where) {
  auto text = os::read_file(file, kMaxPolicy);
  if (text) return text;
  base::Error error = std::move(text).error();
  error.kind = base::Kind::bad_input;
  error.where = base::printable(where);
  if (error.number == ENOENT) error.expected = "expected a policy file that is there";
  return std::unexpected(std::move(error));
}

base::Status resolve_read_only(policy::Policy& policy) {
  for (std::string& path : policy.filesystem.read_only) {
    path = TRY(resolved(path, "filesystem.read_only:"));
  }
  return {};
}

std::vector<Flag> policy_flags() {
  return {
      {"--policy", 0, "FILE", "the policy, TOML or JSON; without it the defaults hold"},
      {"--tier", 0, "TIER", "isolate, container, gvisor, microvm or auto"},
      {"--set", 0, "KEY=VALUE", "one value of the policy, as limits.wall=1s"},
      {"--image", 0, "NAME", "use an image in the place of the host's base", Built::not_yet},
      {"--workdir", 0, "DIR[:overlay|copy]", "work on a folder of the host", Built::not_yet},
      {"--ro", 0, "PATH", "one more path of the host, readable inside"},
      {"--env", 0, "K=V|NAME", "a variable inside; NAME alone is copied from here"},
      {"--allow", 0, "TARGET", "HOST, HOST:PORT, https://HOST/PATH or preset:NAME"},
      {"--timeout", 0, "DURATION", "limits.wall: 90s, 10m, 1h"},
  };
}

base::Status want_no_policy_flags(const Parsed& parsed, std::string_view where) {
  for (const Flag& flag : policy_flags()) {
    if (!parsed.has(flag.name)) continue;
    return base::bad_input(std::string(where),
                           std::string(flag.name) + " beside a run, which has its own policy",
                           "expected one of the two");
  }
  return {};
}

std::vector<Flag> with_policy_flags(std::vector<Flag> more) {
  std::vector<Flag> all = policy_flags();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

base::Result<policy::Effective> load_policy(const World& world, const Parsed& parsed,
                                            const policy::HostSize& size) {
  const auto file = parsed.value("--policy");
  std::string text;
  if (file) text = TRY(read_policy_file(*file, "--policy " + *file));
  const auto changes = overrides(parsed);
  policy::Effective effective =
      TRY(policy::parse(text, file.value_or("(defaults)"), changes, size, preset_source(world)));
  TRY(resolve_read_only(effective.policy));
  std::vector<std::string>& read_only = effective.policy.filesystem.read_only;
  for (const std::string& path : parsed.values("--ro")) {
    read_only.push_back(TRY(resolved(path, "--ro")));
    effective.origins["filesystem.read_only"] = "--ro";
  }
  return effective;
}

base::Result<std::map<std::string, std::string>> passed_environment(const World& world,
                                                                    const policy::Policy& policy) {
  std::map<std::string, std::string> values;
  for (const std::string& name : policy.environment.pass) {
    const auto at = world.env.find(name);
    if (at == world.env.end()) continue;
    const std::string why = policy::credential_like(name, at->second);
    if (!why.empty() && std::ranges::count(policy.environment.plain, name) == 0) {
      return base::bad_input(
          "environment.pass",
          "the value of " + base::printable(name) + " looks like a credential: " + why,
          "give it to the gateway as a [[credential]], or name it in environment.plain");
    }
    values.insert(*at);
  }
  return values;
}

base::Result<plan::HostFacts> host_facts(const World& world) {
  const auto roots = world.env.find("SSL_CERT_FILE");
  const host::Caller caller = {.ssl_cert_file = roots == world.env.end() ? "" : roots->second,
                               .state_dir = world.state_dir,
                               .helper_dir = world.helper_dir};
  plan::HostFacts facts = TRY(host::gather(caller));
  if (join_delegated_group(world, facts)) return host::gather(caller);
  return facts;
}

base::Result<plan::Plan> make_plan(const World& world, const policy::Policy& policy,
                                   const plan::HostFacts& host, std::string name,
                                   std::vector<std::string> argv, Kind kind) {
  const plan::Ask ask = {.name = std::move(name),
                         .argv = std::move(argv),
                         .cwd = "",
                         .caller_env = TRY(passed_environment(world, policy)),
                         .session = kind == Kind::session,
                         .detached = kind == Kind::detached};
  plan::HostFacts facts = host;
  if (host::may_take_machine(policy, facts)) TRY(host::look_for_machine(policy, facts));
  if (plan::asks_of_storage(policy)) host::look_at_storage(facts);
  if (plan::may_use_gvisor(policy)) TRY(host::ask_runsc(facts));
  plan::Plan plan = TRY(plan::make(policy, facts, ask, base::random_base32));
  const policy::Filesystem& files = plan.policy.filesystem;
  TRY(plan::hide(
      plan, TRY(workspace::hidden_below(files.read_only, files.hide, workspace::kMostSearched))));
  if (world.edit_plan) world.edit_plan(plan);
  return plan;
}

}  // namespace cli
