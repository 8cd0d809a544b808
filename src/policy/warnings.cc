// What rules say together that may not be what their writer meant: warnings, no errors.
#include <fmt/format.h>

#include <algorithm>

#include "policy/counting.h"
#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

std::string rule_path(std::size_t index, std::string_view key) {
  return fmt::format("egress[{}].{}", index, key);
}

void warn(Reading& reading, const std::string& path, const std::string& what) {
  reading.warnings.push_back(fmt::format("{}: {}: {}", reading.origins[path], path, what));
}

void warn_blocked(Reading& reading, const Egress& rule, std::size_t index) {
  if (rule.host.empty()) return;
  const std::string name =
      rule.host.starts_with('*') ? "any." + std::string(suffix_of(rule.host)) : rule.host;
  const std::string why = blocked_name(name);
  if (why.empty()) return;
  const std::string path = rule_path(index, "host");
  warn(reading, path,
       fmt::format("\"{}\" is never resolved ({}), whatever the rules", rule.host, why));
}

void warn_wide(Reading& reading, const Egress& rule, std::size_t index) {
  const auto cidr = parse_cidr(rule.cidr);
  if (rule.cidr.empty() || !cidr || cidr->bits >= (cidr->address.v6 ? 16U : 8U)) return;
  warn(reading, rule_path(index, "cidr"),
       fmt::format("{} holds private ranges and most of the internet", rule.cidr));
}

// In a tunnel nobody sees which of a shared host's tenants is asked (N54).
void warn_shared(Reading& reading, const Policy& policy, std::size_t index) {
  const Egress& rule = policy.egress[index];
  if (rule.host.empty() || rule.host.starts_with('*') || rule.inspects) return;
  const bool tunnelled = std::ranges::any_of(rule.ports, [&](std::uint16_t port) {
    return looked_into(policy, rule, port) == Looked::none;
  });
  const std::string suffix = tunnelled ? shared_suffix(rule.host) : "";
  if (suffix.empty()) return;
  warn(reading, rule_path(index, "host"),
       fmt::format("many share the servers under {}, and in a tunnel nobody sees which of them is "
                   "asked; methods or paths make the gateway look inside",
                   suffix));
}

bool covers_ports(const Deny& deny, const std::vector<std::uint16_t>& ports) {
  return deny.ports.empty() ||
         std::ranges::all_of(ports, [&](std::uint16_t port) { return has_port(deny.ports, port); });
}

// A rule of which a denial leaves nothing (F12).
void warn_shadowed(Reading& reading, const Policy& policy, std::size_t index) {
  const Deny& deny = policy.deny[index];
  if (!denies_whole(deny)) return;
  const std::string path = fmt::format("deny[{}]", index);
  const auto everything = deny.cidr.empty() ? std::nullopt : std::optional(parse_cidr(deny.cidr));
  if (everything && *everything && (*everything)->bits == 0 && deny.ports.empty()) {
    warn(reading, path,
         fmt::format("{} shadows every allow: no {} address is left", deny.cidr,
                     (*everything)->address.v6 ? "IPv6" : "IPv4"));
  }
  for (const Egress& rule : policy.egress) {
    const TcpTarget raw = rule.tcp.empty() ? TcpTarget{} : tcp_target(rule.tcp);
    const std::string& host = rule.tcp.empty() ? rule.host : raw.host;
    const auto ports = rule.tcp.empty() ? rule.ports : std::vector{raw.port};
    if (deny.host.empty() || host.empty() || !host_contains(deny.host, host)) continue;
    if (covers_ports(deny, ports))
      warn(reading, path, fmt::format("shadows all of rule \"{}\"", rule.name));
  }
}

// Whoever is reached by address is not asked for a name.
void warn_by_name(Reading& reading, const Policy& policy, std::size_t index) {
  if (policy.deny[index].host.empty()) return;
  const std::string path = fmt::format("deny[{}].host", index);
  const auto opens_addresses = [](const Egress& rule) {
    return !rule.cidr.empty() ||
           (!rule.tcp.empty() && parse_address(tcp_target(rule.tcp).host).has_value());
  };
  const auto rule = std::ranges::find_if(policy.egress, opens_addresses);
  const bool open = policy.network.fallback == NetworkDefault::open_public;
  if (rule == policy.egress.end() && !open) return;
  const std::string by = open ? "network.default = \"public\"" : "rule \"" + rule->name + "\"";
  warn(
      reading, path,
      fmt::format("a denial by name does not hold the server's addresses, which {} opens; deny its "
                  "cidr as well",
                  by));
}

}  // namespace

void warn_of_rules(Reading& reading, const Policy& policy) {
  for (std::size_t i = 0; i < policy.egress.size(); ++i) {
    warn_blocked(reading, policy.egress[i], i);
    warn_wide(reading, policy.egress[i], i);
    warn_shared(reading, policy, i);
  }
  for (std::size_t i = 0; i < policy.deny.size(); ++i) {
    warn_shadowed(reading, policy, i);
    warn_by_name(reading, policy, i);
  }
}

}  // namespace policy
