// What the egress rules of a whole policy must keep to.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

std::string rule_path(std::size_t index, std::string_view key) {
  return fmt::format("egress[{}].{}", index, key);
}

// Both match some name with equal narrowness, so that both count for it.
bool count_together(const Egress& a, const Egress& b) {
  return !a.host.empty() && !b.host.empty() && specificity(a.host) == specificity(b.host) &&
         hosts_intersect(a.host, b.host);
}

std::optional<std::uint16_t> common_port(const Egress& a, const Egress& b) {
  for (std::uint16_t port : a.ports) {
    if (std::ranges::find(b.ports, port) != b.ports.end()) return port;
  }
  return std::nullopt;
}

// Whether a denial reaches "host:port" of a tcp rule.
bool deny_holds(const Deny& deny, std::string_view tcp) {
  const auto colon = tcp.rfind(':');
  const auto port = base::parse_number(tcp.substr(colon + 1));
  return hosts_intersect(deny.host, tcp.substr(0, colon)) &&
         (deny.ports.empty() || std::ranges::find(deny.ports, port) != deny.ports.end());
}

base::Status check_names(Reading& reading, const Policy& policy) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < policy.egress.size(); ++i) {
    if (policy.egress[i].name == kPublicRule) {
      return base::bad_input(
          reading.origins[fmt::format("egress[{}]", i)],
          fmt::format("egress[{}]: \"{}\" stands in the journal for network.default = \"public\"",
                      i, kPublicRule),
          "expected another name");
    }
    if (seen.insert(policy.egress[i].name).second) continue;
    return base::bad_input(
        reading.origins[fmt::format("egress[{}]", i)],
        fmt::format("egress[{}]: two rules are called \"{}\"", i, policy.egress[i].name),
        "expected names that differ");
  }
  seen.clear();
  for (std::size_t i = 0; i < policy.credentials.size(); ++i) {
    if (seen.insert(policy.credentials[i].name).second) continue;
    return base::bad_input(reading.origins[fmt::format("credential[{}]", i)],
                           fmt::format("credential[{}]: two credentials are called \"{}\"", i,
                                       policy.credentials[i].name),
                           "expected names that differ");
  }
  return {};
}

// One rule looks inside and another does not, for the same host and port.
base::Status check_pair(Reading& reading, const Policy& policy, std::size_t first,
                        std::size_t second) {
  const Egress& a = policy.egress[first];
  const Egress& b = policy.egress[second];
  if (count_together(a, b) && a.inspects != b.inspects) {
    const auto port = common_port(a, b);
    if (!port) return {};
    const std::string& inside = a.inspects ? a.name : b.name;
    const std::string& tunnel = a.inspects ? b.name : a.name;
    return base::bad_input(
        reading.origins[fmt::format("egress[{}]", second)],
        fmt::format("egress[{}]: for {}:{} rule \"{}\" looks inside and \"{}\" does not", second,
                    b.host, *port, inside, tunnel),
        "expected both to name methods or paths, or neither");
  }
  const Egress& raw = a.tcp.empty() ? b : a;
  const Egress& other = a.tcp.empty() ? a : b;
  if (raw.tcp.empty() || other.host.empty()) return {};
  for (std::uint16_t port : other.ports) {
    if (raw.tcp != fmt::format("{}:{}", other.host, port)) continue;
    return base::bad_input(
        reading.origins[fmt::format("egress[{}]", second)],
        fmt::format("egress[{}]: \"{}\" is both raw (\"{}\") and looked at (\"{}\")", second,
                    raw.tcp, raw.name, other.name),
        "expected one of the two rules");
  }
  return {};
}

// A denial of some requests can only be carried out where requests are looked at.
base::Status check_deny(Reading& reading, const Policy& policy, std::size_t index) {
  const Deny& deny = policy.deny[index];
  if (deny.host.empty() || (deny.methods.empty() && deny.paths.empty())) return {};
  const std::string key = deny.paths.empty() ? "methods" : "paths";
  const auto raw = std::ranges::find_if(policy.egress, [&](const Egress& rule) {
    return !rule.tcp.empty() && deny_holds(deny, rule.tcp);
  });
  if (raw == policy.egress.end()) return {};
  return base::bad_input(
      reading.origins[fmt::format("deny[{}].{}", index, key)],
      fmt::format("deny[{}].{}: rule \"{}\" lets \"{}\" through raw, where no request is looked at",
                  index, key, raw->name, raw->tcp),
      "expected that rule with host in place of tcp, or a [[deny]] with ports that leave it out");
}

// `own` is about requests; where nothing is looked into it would say nothing.
base::Status check_own(Reading& reading, const Policy& policy, std::size_t index) {
  const Egress& rule = policy.egress[index];
  if (rule.own == Own::pass || rule.inspects || rule.host == kHostName) return {};
  for (std::uint16_t port : rule.ports) {
    if (port == 80 || needs_inspection(policy, rule.host, port)) continue;
    return base::bad_input(
        reading.origins[rule_path(index, "own")],
        fmt::format("egress[{}].own: nothing is looked into at {}:{}", index, rule.host, port),
        "expected methods or paths in that rule as well");
  }
  return {};
}

}  // namespace

base::Status check_rules(Reading& reading, const Policy& policy) {
  TRY(check_names(reading, policy));
  for (std::size_t i = 0; i < policy.egress.size(); ++i) {
    TRY(check_suffix(reading, policy.egress[i].host, rule_path(i, "host")));
    TRY(check_own(reading, policy, i));
    for (std::size_t j = i + 1; j < policy.egress.size(); ++j)
      TRY(check_pair(reading, policy, i, j));
  }
  for (std::size_t i = 0; i < policy.deny.size(); ++i) TRY(check_deny(reading, policy, i));
  warn_of_rules(reading, policy);
  return {};
}

}  // namespace policy
