// `cerco image warm`: the image that microVMs have as their base, and the guest that they are
// copied from, made ahead of their start.
#include "cli/cli.h"
#include "host/machine.h"
#include "supervisor/supervisor.h"

namespace cli {

namespace {

base::Result<policy::Policy> policy_for(const World& world, const Parsed& parsed,
                                        const plan::HostFacts& host) {
  policy::Policy policy = TRY(load_policy(world, parsed, host.size)).policy;
  const std::string& name = parsed.words[0];
  if (name == "host") {
    policy.filesystem.base = {.kind = policy::BaseKind::host, .name = {}};
  } else if (name.starts_with("dir:/")) {
    policy.filesystem.base = {.kind = policy::BaseKind::dir, .name = name.substr(4)};
  } else {
    return base::not_yet("image warm " + base::printable(name));
  }
  policy.isolation.tier = policy::Tier::microvm;
  return policy;
}

}  // namespace

base::Result<int> image_warm(const World& world, const Parsed& parsed) {
  TRY(want_words("image warm", parsed, 1, "host|dir:PATH"));
  const plan::HostFacts host = TRY(host_facts(world));
  const policy::Policy policy = TRY(policy_for(world, parsed, host));
  if (policy.filesystem.base.kind == policy::BaseKind::host) {
    print(world, TRY(host::make_image_of_host(host)) + "\n");
  }
  const auto plan = make_plan(world, policy, host, "", {"true"}, Kind::one_command);
  // The host's image alone is worth having where there is no machine yet.
  if (!plan && policy.filesystem.base.kind == policy::BaseKind::host) {
    print_error(world, "cerco: no template: " + base::printable(plan.error().line()) + "\n");
    return 0;
  }
  if (!plan) return std::unexpected(plan.error());
  print(world, TRY_IN("template", supervisor::warm(*plan)) + "\n");
  return 0;
}

}  // namespace cli
