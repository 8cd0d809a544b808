// `cerco doctor`: what this host can give, by tier and by protection, and what would do where it
// cannot.
#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"
#include "cli/doctor_canary.h"
#include "host/machine.h"
#include "plan/abilities.h"

namespace cli {
namespace {

std::string line_of(const plan::Ability& ability) {
  std::string out = fmt::format("  {:<4} {}\n", ability.given ? "yes" : "NO", ability.name);
  for (const std::string& lack : ability.lacks) out += fmt::format("         {}\n", lack);
  for (const std::string& remedy : ability.remedies) out += fmt::format("         → {}\n", remedy);
  return out;
}

std::string json_of(const std::vector<plan::Ability>& abilities) {
  std::vector<std::string> items;
  for (const plan::Ability& ability : abilities) {
    items.push_back(base::JsonObject()
                        .add("name", ability.name)
                        .add("given", ability.given)
                        .raw("lacks", base::json_strings(ability.lacks))
                        .raw("remedies", base::json_strings(ability.remedies))
                        .text());
  }
  return base::json_array(items);
}

std::string json_of(const std::vector<CanaryFinding>& findings) {
  std::vector<std::string> items;
  for (const CanaryFinding& one : findings) {
    items.push_back(base::JsonObject()
                        .add("name", one.name)
                        .add("good", one.good)
                        .add("what", base::printable(one.what))
                        .text());
  }
  return base::json_array(items);
}

// A run with a planted secret, and where it was found.
base::Result<int> canary(const World& world, const Parsed& parsed,
                         const policy::Effective& effective) {
  const std::vector<CanaryFinding> findings = TRY(try_canary(world, effective));
  const bool good = std::ranges::all_of(findings, &CanaryFinding::good);
  if (parsed.has("--json")) {
    print(world,
          base::JsonObject().add("given", good).raw("canary", json_of(findings)).text() + "\n");
    return good ? 0 : 1;
  }
  std::string out = "a run with a planted secret\n";
  for (const CanaryFinding& one : findings) {
    out += fmt::format("  {:<4} {}\n", one.good ? "yes" : "NO", one.name);
    if (!one.good) out += fmt::format("         {}\n", base::printable(one.what));
  }
  print(world, out);
  return good ? 0 : 1;
}

}  // namespace

base::Result<int> doctor(const World& world, const Parsed& parsed) {
  TRY(want_words("doctor", parsed, 0, "[POLICY FLAGS]"));
  plan::HostFacts host = TRY(host_facts(world));
  const policy::Effective effective = TRY(load_policy(world, parsed, host.size));
  if (parsed.has("--canary")) return canary(world, parsed, effective);
  TRY(host::look_for_machine(effective.policy, host));
  const auto tiers = plan::tier_abilities(effective.policy, host);
  const auto protections = plan::protection_abilities(effective.policy, host);
  const std::string asked(
      policy::to_string(effective.policy.isolation.tier.value_or(policy::Tier::container)));
  const bool tier = std::ranges::any_of(
      tiers, [&](const plan::Ability& one) { return one.name == asked && one.given; });
  const bool whole = tier && std::ranges::all_of(protections, &plan::Ability::given);
  if (parsed.has("--json")) {
    print(world, base::JsonObject()
                         .add("kernel", host.kernel)
                         .add("asked", asked)
                         .add("given", whole)
                         .raw("tiers", json_of(tiers))
                         .raw("protections", json_of(protections))
                         .text() +
                     "\n");
    return whole ? 0 : 1;
  }
  std::string out = fmt::format("kernel {}, {}\n\ntiers\n", base::printable(host.kernel),
                                host.root ? "as root" : "as an ordinary user");
  for (const auto& one : tiers) out += line_of(one);
  out += "\nprotections that the policy asks for\n";
  for (const auto& one : protections) out += line_of(one);
  out += whole
             ? "\nThis host gives all that was asked for.\n"
             : fmt::format("\nThis host does not give all that was asked for (tier {}).\n", asked);
  print(world, out);
  return whole ? 0 : 1;
}

}  // namespace cli
