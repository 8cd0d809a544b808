// The one matcher: what the policy says of a connection and of a request.
//
// The gateway and `cerco why` both ask here. Order of the rules never matters: of the egress rules
// only those with the most specific matching host count, they add up, and every denial beats them.
#include <algorithm>

#include "policy/counting.h"
#include "policy/fix.h"
#include "policy/path.h"
#include "policy/pattern.h"
#include "policy/policy.h"

namespace policy {
namespace {

constexpr std::uint16_t kTlsPort = 443;
constexpr std::uint16_t kPlainPort = 80;

// --- Verdicts ------------------------------------------------------------------------------

Verdict refuse(std::string reason, std::string fix) {
  Verdict verdict;
  verdict.reason = std::move(reason);
  verdict.fix = std::move(fix);
  return verdict;
}

Verdict allow(const Policy& policy, std::size_t rule, Treatment treatment) {
  Verdict verdict;
  verdict.allow = true;
  verdict.treatment = treatment;
  verdict.rule = policy.egress[rule].name;
  verdict.rule_index = rule;
  return verdict;
}

// Whether what goes to that host and port is looked into, whatever its bytes look like. Where no
// rule names them, only a denial of some requests makes it so.
bool looks_inside(const Policy& policy, std::string_view host, std::uint16_t port) {
  const auto rules = with_port(policy, counting_rules(policy, host), port);
  const auto has = [&](auto&& what) { return std::ranges::any_of(rules, what); };
  if (has([&](std::size_t i) { return policy.egress[i].inspects; })) return true;
  const bool named = has([&](std::size_t i) { return !policy.egress[i].host.empty(); });
  if (!named && !(rules.empty() && reaches_beyond_rules(policy))) return false;
  return (named && std::ranges::any_of(policy.credentials,
                                       [&](const Credential& credential) {
                                         return credential.inject.kind != InjectKind::postgres &&
                                                has_port(credential.ports, port) &&
                                                std::ranges::any_of(
                                                    credential.hosts, [&](const auto& bound) {
                                                      return hosts_intersect(bound, host);
                                                    });
                                       })) ||
         std::ranges::any_of(policy.deny, [&](const Deny& deny) {
           return !denies_whole(deny) && deny_reaches(deny, host, port);
         });
}

// How a connection that some rule allows is treated; `refuse` where its bytes are of the wrong
// kind. Port 443 is TLS alone and port 80 plain HTTP alone; the host's own services are looked into
// in the clear, never through TLS.
Treatment treatment_of(const Policy& policy, const Request& request) {
  const bool own = request.host.name == kHostName;
  switch (request.scheme) {
    case Scheme::tcp:
      return Treatment::refuse;
    case Scheme::http:
      return request.port == kTlsPort && !own ? Treatment::refuse : Treatment::inspect;
    case Scheme::tls:
      if (request.port == kPlainPort) return Treatment::refuse;
      if (!looks_inside(policy, request.host.name, request.port)) return Treatment::tunnel;
      return own ? Treatment::refuse : Treatment::inspect;
  }
  return Treatment::refuse;
}

// What no rule names: refused as `refusal` says, unless everything public is open, or audit mode
// lifts the refusal. On the ports of the web the bytes are told apart as ever; on all others they
// are relayed raw, since in many protocols the server speaks first.
Verdict beyond_rules(const Policy& policy, const Request& request, Verdict refusal, bool open) {
  const bool audit = policy.network.mode == NetworkMode::audit;
  if ((!open && !audit) || request.host.name == kHostName) return refusal;
  const bool web = request.port == kTlsPort || request.port == kPlainPort;
  const bool told = web || looks_inside(policy, request.host.name, request.port);
  const Treatment treatment = told ? treatment_of(policy, request) : Treatment::tunnel;
  if (treatment == Treatment::refuse) return refuse("protocol", "");
  Verdict verdict;
  verdict.allow = true;
  verdict.treatment = treatment;
  if (open) {
    verdict.rule = kPublicRule;
    return verdict;
  }
  verdict.audit = true;
  verdict.reason = std::move(refusal.reason);
  verdict.fix = std::move(refusal.fix);
  return verdict;
}

bool is_public_open(const Policy& policy) {
  return policy.network.fallback == NetworkDefault::open_public;
}

// A literal matches tcp and cidr rules only, and none of them opens what the guard never opens.
Verdict decide_literal(const Policy& policy, const Request& request) {
  const auto address = parse_address(request.host.name);
  if (!address) return refuse("host", "");
  const Judgement judgement = judge(*address);
  if (judgement.guard == Guard::never) return refuse("range", "");
  if (address_denied(policy, *address, request.port)) return refuse("deny-rule", "");
  bool other_port = false;
  for (std::size_t i = 0; i < policy.egress.size(); ++i) {
    const Egress& rule = policy.egress[i];
    const auto cidr = rule.cidr.empty() ? std::nullopt : std::optional(parse_cidr(rule.cidr));
    const bool inside = (cidr && *cidr && contains(**cidr, *address)) ||
                        (!rule.tcp.empty() && tcp_target(rule.tcp).host == request.host.name);
    if (!inside) continue;
    if (rule_has_port(rule, request.port)) return allow(policy, i, Treatment::tunnel);
    other_port = true;
  }
  if (judgement.guard != Guard::open) return refuse("range", "");
  return beyond_rules(policy, request, refuse(other_port ? "port" : "host", fix_raw(request)),
                      is_public_open(policy));
}

Verdict decide_name(const Policy& policy, const Request& request) {
  const std::string& host = request.host.name;
  if (!blocked_name(host).empty()) return refuse("blocked-name", "");
  if (connection_denied(policy, host, request.port)) return refuse("deny-rule", "");
  const auto named = counting_rules(policy, host);
  const auto rules = with_port(policy, named, request.port);
  if (!rules.empty() && with_scheme(policy, rules, request.scheme).empty())
    return refuse("protocol", "");
  if (rules.empty()) {
    const std::string reason = named.empty() ? "host" : "port";
    Verdict refusal =
        refuse(reason, request.scheme == Scheme::tcp ? fix_raw(request) : fix_host(request));
    return beyond_rules(policy, request, std::move(refusal),
                        named.empty() && is_public_open(policy));
  }
  for (std::size_t i : rules) {
    if (!policy.egress[i].tcp.empty()) return allow(policy, i, Treatment::tunnel);
  }
  const Treatment treatment = treatment_of(policy, request);
  if (treatment == Treatment::refuse) return refuse("protocol", "");
  return allow(policy, with_scheme(policy, rules, request.scheme).front(), treatment);
}

// The rule that lacks least of those that count, and what it lacks.
struct Nearest {
  std::size_t rule = 0;
  std::string reason;
};

Nearest nearest(const Policy& policy, const std::vector<std::size_t>& rules, const Request& request,
                const std::vector<std::string>& methods) {
  std::optional<std::size_t> method;
  std::optional<std::size_t> path;
  for (std::size_t i : rules) {
    const Egress& rule = policy.egress[i];
    const bool this_method = methods_pass(rule.methods, methods);
    const bool this_path = paths_pass(rule, request.path);
    if (this_method && this_path) return {i, "header"};
    if (this_method && !method) method = i;
    if (this_path && !path) path = i;
  }
  if (path) return {*path, "method"};
  return method ? Nearest{*method, "path"} : Nearest{rules.front(), "method"};
}

// A request that each rule of its host refuses. Audit mode lets methods and paths go; the limits of
// the nearest rule hold all the same.
Verdict refuse_request(const Policy& policy, const Request& request,
                       const std::vector<std::size_t>& rules,
                       const std::vector<std::string>& methods) {
  Nearest next = nearest(policy, rules, request, methods);
  const bool fixable =
      next.reason != "header" && !std::ranges::any_of(methods, is_forbidden_method);
  std::string fix = fixable ? fix_request(request, methods) : "";
  if (!fixable || policy.network.mode != NetworkMode::audit)
    return refuse(std::move(next.reason), std::move(fix));
  Verdict verdict = allow(policy, next.rule, Treatment::inspect);
  verdict.audit = true;
  verdict.reason = std::move(next.reason);
  verdict.fix = std::move(fix);
  return verdict;
}

Verdict decide_inside(const Policy& policy, const Request& request) {
  Verdict connection = decide_connection(policy, request);
  if (!connection.allow || connection.treatment == Treatment::tunnel) return connection;
  const std::vector<std::string> methods = methods_of(request);
  if (request_denied(policy, request, methods)) return refuse("deny-rule", "");
  const auto rules = with_scheme(
      policy, with_port(policy, counting_rules(policy, request.host.name), request.port),
      request.scheme);
  if (rules.empty()) return methods_pass({}, methods) ? connection : refuse("method", "");
  for (std::size_t i : rules) {
    const Egress& rule = policy.egress[i];
    if (methods_pass(rule.methods, methods) && paths_pass(rule, request.path) &&
        headers_pass(rule.headers, request)) {
      return allow(policy, i, Treatment::inspect);
    }
  }
  return refuse_request(policy, request, rules, methods);
}

}  // namespace

Verdict decide_connection(const Policy& policy, const Request& request) {
  Verdict verdict =
      request.host.is_address ? decide_literal(policy, request) : decide_name(policy, request);
  verdict.revision = policy.revision;
  return verdict;
}

Verdict decide_request(const Policy& policy, const Request& request) {
  Verdict verdict = decide_inside(policy, request);
  verdict.revision = policy.revision;
  return verdict;
}

bool covers(const Credential& credential, const Request& request) {
  if (request.host.is_address) return false;
  const std::string& host = request.host.name;
  if (credential.inject.kind == InjectKind::postgres) {
    return request.scheme == Scheme::tcp && has_port(credential.ports, request.port) &&
           std::ranges::find(credential.hosts, host) != credential.hosts.end();
  }
  if (request.scheme != Scheme::tls && !(request.scheme == Scheme::http && host == kHostName))
    return false;
  const std::string loosest = loosest_path(request.path);
  const bool path = std::ranges::any_of(credential.paths, [&](const std::string& pattern) {
    return path_matches(pattern, request.path) && path_matches(pattern, loosest);
  });
  const std::vector<std::string> methods = methods_of(request);
  return path && has_port(credential.ports, request.port) &&
         std::ranges::any_of(credential.hosts,
                             [&](const std::string& bound) { return host_matches(bound, host); }) &&
         !credential.methods.empty() && methods_pass(credential.methods, methods);
}

bool needs_inspection(const Policy& policy, std::string_view host, std::uint16_t port) {
  return port != kPlainPort && host != kHostName && looks_inside(policy, host, port);
}

Looked looked_into(const Policy& policy, const Egress& rule, std::uint16_t port) {
  if (rule.host.empty()) return Looked::none;
  if (port == kPlainPort || rule.inspects) return Looked::all;
  if (!looks_inside(policy, rule.host, port)) return Looked::none;
  const bool bound = std::ranges::any_of(policy.credentials, [&](const Credential& credential) {
    return has_port(credential.ports, port) &&
           std::ranges::any_of(credential.hosts, [&](const std::string& host) {
             return host_contains(host, rule.host);
           });
  });
  const bool denied = std::ranges::any_of(policy.deny, [&](const Deny& deny) {
    return !denies_whole(deny) && deny_reaches(deny, rule.host, port) &&
           host_contains(deny.host, rule.host);
  });
  return bound || denied ? Looked::all : Looked::some;
}

bool terminates(const Policy& policy) {
  const bool denied =
      reaches_beyond_rules(policy) && std::ranges::any_of(policy.deny, [](const Deny& deny) {
        return !denies_whole(deny) && deny.ports != std::vector{kPlainPort};
      });
  // A client of PostgreSQL may want to verify whom it speaks with.
  const bool postgres = std::ranges::any_of(policy.credentials, [](const Credential& credential) {
    return credential.inject.kind == InjectKind::postgres;
  });
  return denied || postgres || std::ranges::any_of(policy.egress, [&](const Egress& rule) {
           return !rule.host.empty() && std::ranges::any_of(rule.ports, [&](std::uint16_t port) {
             return needs_inspection(policy, rule.host, port);
           });
         });
}

bool encoded_slash_allowed(const Policy& policy, std::string_view host, std::uint16_t port) {
  const auto rules = with_port(policy, counting_rules(policy, host), port);
  return rules.empty() ? reaches_beyond_rules(policy)
                       : std::ranges::any_of(
                             rules, [&](std::size_t i) { return policy.egress[i].encoded_slash; });
}

bool reaches_beyond_rules(const Policy& policy) {
  return is_public_open(policy) || policy.network.mode == NetworkMode::audit;
}

const Egress* rule_of(const Policy& policy, const Verdict& verdict) {
  return verdict.rule_index < policy.egress.size() ? &policy.egress[verdict.rule_index] : nullptr;
}

namespace {

bool denied_on_every_port(const Policy& policy, std::string_view host) {
  return std::ranges::any_of(policy.deny, [&](const Deny& deny) {
    return denies_whole(deny) && deny.ports.empty() && deny_reaches(deny, host, kTlsPort);
  });
}

bool named_port_open(const Policy& policy, std::string_view host,
                     const std::vector<std::size_t>& rules) {
  for (std::size_t i : rules) {
    const Egress& rule = policy.egress[i];
    if (!rule.tcp.empty()) {
      if (!connection_denied(policy, host, tcp_target(rule.tcp).port)) return true;
      continue;
    }
    for (std::uint16_t port : rule.ports) {
      if (!connection_denied(policy, host, port)) return true;
    }
  }
  return false;
}

}  // namespace

NameRuling rule_on_name(const Policy& policy, std::string_view host) {
  if (!blocked_name(host).empty() || host.starts_with('*')) return NameRuling::refused;
  const auto rules = counting_rules(policy, host);
  if (named_port_open(policy, host, rules)) return NameRuling::allowed;
  if (host == kHostName || denied_on_every_port(policy, host)) return NameRuling::refused;
  if (rules.empty() && is_public_open(policy)) return NameRuling::allowed;
  return policy.network.mode == NetworkMode::audit ? NameRuling::audited : NameRuling::refused;
}

bool name_allowed(const Policy& policy, std::string_view host) {
  return rule_on_name(policy, host) != NameRuling::refused;
}

bool address_denied(const Policy& policy, const Address& address, std::uint16_t port) {
  return std::ranges::any_of(policy.deny, [&](const Deny& deny) {
    if (deny.cidr.empty() || !(deny.ports.empty() || has_port(deny.ports, port))) return false;
    const auto cidr = parse_cidr(deny.cidr);
    return !cidr || contains(*cidr, address);
  });
}

bool range_opened(const Policy& policy, const Egress& rule, const Address& address) {
  const Judgement judgement = judge(address);
  const bool loopback = judgement.reason == "loopback" && (!address.v6 || address.bytes[0] == 0);
  const bool plain_loopback = loopback && (!address.v6 || to_string(address) == "::1");
  if (rule.host == kHostName) return plain_loopback;
  if (!rule.cidr.empty() || !rule.tcp.empty()) {
    if (judgement.guard == Guard::never) return false;
    if (!rule.tcp.empty() && tcp_target(rule.tcp).host == to_string(address)) return true;
    const auto cidr = parse_cidr(rule.cidr);
    if (!rule.cidr.empty() && cidr && contains(*cidr, address)) return true;
  }
  // Rules of one host add up, so their ranges do.
  return std::ranges::any_of(policy.egress, [&](const Egress& other) {
    if (other.host != rule.host || other.tcp != rule.tcp || other.cidr != rule.cidr) return false;
    return std::ranges::any_of(other.addresses, [&](const std::string& opened) {
      if (opened == "host") return plain_loopback;
      const auto cidr = parse_cidr(opened);
      return judgement.guard != Guard::never && cidr && contains(*cidr, address);
    });
  });
}

}  // namespace policy
