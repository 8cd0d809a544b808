// What the packet rules take to the gateway, and what the gateway needs to do its work.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "plan/parts.h"

namespace plan {
namespace {

using policy::Policy;

constexpr std::string_view kDnsPort = "53";

struct Target {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};

// "name:port", "1.2.3.4:port", "[::1]:port"; nullopt when it is none of them.
std::optional<Target> split_target(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  const auto port = base::parse_number(text.substr(colon + 1));
  if (!port || *port == 0 || *port > 65535) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return Target{std::string(host), static_cast<std::uint16_t>(*port)};
}

bool is_address(std::string_view text) {
  return policy::parse_address(text).has_value();
}

// "host:port" where the port may be missing; the port is then 53.
std::optional<std::string> as_resolver(std::string_view text) {
  if (is_address(text)) {
    return text.find(':') == std::string_view::npos ? fmt::format("{}:{}", text, kDnsPort)
                                                    : fmt::format("[{}]:{}", text, kDnsPort);
  }
  const auto target = split_target(text);
  if (!target || !is_address(target->host)) return std::nullopt;
  return target->host.find(':') == std::string::npos
             ? fmt::format("{}:{}", target->host, target->port)
             : fmt::format("[{}]:{}", target->host, target->port);
}

std::string single(std::string_view address) {
  return fmt::format("{}/{}", address, address.find(':') == std::string_view::npos ? 32 : 128);
}

// Whether the pattern `wide` ("a.b", "*.b", "**.b") takes in the pattern or name `narrow`.
bool takes_in(std::string_view wide, std::string_view narrow) {
  if (wide == narrow) return true;
  const bool deep = wide.starts_with("**.");
  if (!deep && !wide.starts_with("*.")) return false;
  const std::string_view suffix = wide.substr(deep ? 2 : 1);  // with its dot
  if (!narrow.ends_with(suffix) || narrow.size() == suffix.size()) return false;
  const std::string_view front = narrow.substr(0, narrow.size() - suffix.size());
  return deep || front.find('.') == std::string_view::npos;
}

}  // namespace

Capture capture_for(const Policy& policy) {
  std::map<std::string, std::set<std::uint16_t>> literal;  // CIDR → ports
  std::set<std::uint16_t> named;
  for (const auto& rule : policy.egress) {
    if (!rule.host.empty()) named.insert(rule.ports.begin(), rule.ports.end());
    if (!rule.cidr.empty()) literal[rule.cidr].insert(rule.ports.begin(), rule.ports.end());
    const auto target = split_target(rule.tcp);
    if (!target) continue;
    if (is_address(target->host)) {
      literal[single(target->host)].insert(target->port);
    } else {
      named.insert(target->port);
    }
  }
  Capture capture;
  const auto steer = [&](std::string cidr, const std::set<std::uint16_t>& ports) {
    if (!ports.empty()) capture.steered.push_back({std::move(cidr), {ports.begin(), ports.end()}});
  };
  capture.steer_public = policy::reaches_beyond_rules(policy);
  if (capture.steer_public) {
    capture.steered = {{capture.pool_v4, {}}, {capture.pool_v6, {}}};
  } else {
    steer(capture.pool_v4, named);
    steer(capture.pool_v6, named);
  }
  for (const auto& [cidr, ports] : literal) steer(cidr, ports);
  // Where nothing is allowed there is no proxy either: its port is refused like any other.
  if (!capture.steered.empty()) steer(single(kProxyAddress), {kProxyPort});
  return capture;
}

bool bound_to(const policy::Credential& credential, const policy::Egress& rule) {
  const bool same_port =
      credential.ports.empty() || rule.ports.empty() ||
      std::ranges::any_of(rule.ports, [&](std::uint16_t port) {
        return std::ranges::find(credential.ports, port) != credential.ports.end();
      });
  return same_port && !rule.host.empty() &&
         std::ranges::any_of(credential.hosts, [&](const auto& host) {
           return takes_in(rule.host, host) || takes_in(host, rule.host);
         });
}

bool resolves_names(const Policy& policy) {
  if (policy::reaches_beyond_rules(policy)) return true;
  return std::ranges::any_of(policy.egress, [](const policy::Egress& rule) {
    if (!rule.host.empty()) return rule.host != policy::kHostName;
    const auto target = split_target(rule.tcp);
    return target && !is_address(target->host);
  });
}

base::Result<std::vector<std::string>> resolver_list(const Policy& policy, const HostFacts& host) {
  const bool own = !policy.network.resolvers.empty();
  std::vector<std::string> list;
  for (const auto& text : own ? policy.network.resolvers : host.resolvers) {
    const auto resolver = as_resolver(text);
    if (resolver) {
      list.push_back(*resolver);
    } else if (own) {
      return base::bad_input("network.resolvers", fmt::format("{:?} is no address", text),
                             "an IP address, or IP:PORT");
    }
  }
  return list;
}

}  // namespace plan
