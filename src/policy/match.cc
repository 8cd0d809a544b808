// The one matcher: what the policy says of a connection and of a request.
//
// The gateway and `cerco why` both ask here. Order of the rules never matters: of the egress rules
// only those with the most specific matching host count, they add up, and every denial beats them.
#include <algorithm>

#include "policy/fix.h"
#include "policy/path.h"
#include "policy/pattern.h"
#include "policy/policy.h"

namespace policy {
namespace {

constexpr std::uint16_t kTlsPort = 443;
constexpr std::uint16_t kPlainPort = 80;

bool has_port(const std::vector<std::uint16_t>& ports, std::uint16_t port) {
  return std::ranges::find(ports, port) != ports.end();
}

// --- Methods -------------------------------------------------------------------------------

// Never a matter of policy: they reflect credentials or open tunnels inside of tunnels.
bool is_forbidden_method(std::string_view method) {
  const std::string known = base::to_upper(method);
  return known == "TRACE" || known == "TRACK" || known == "CONNECT";
}

bool names_method(const std::vector<std::string>& methods, std::string_view method) {
  return std::ranges::any_of(methods, [&](const std::string& known) {
    return known == method || (known == "GET" && method == "HEAD");
  });
}

// Servers that take `delete` for DELETE exist, so what is denied is denied in any case.
bool denies_method(const std::vector<std::string>& denied, std::string_view method) {
  const std::string asked = base::to_upper(method);
  return std::ranges::any_of(denied, [&](const std::string& one) {
    const std::string known = base::to_upper(one);
    return known == asked || (known == "GET" && asked == "HEAD");
  });
}

// The request's method, and those that a server may take it for because of an override header.
std::vector<std::string> methods_of(const Request& request) {
  std::vector<std::string> methods = {request.method};
  for (const auto* fields : {&request.headers, &request.dropped}) {
    for (const auto& [name, value] : *fields) {
      if (name == "x-http-method-override" || name == "x-http-method" ||
          name == "x-method-override" || name == "x-original-method") {
        methods.push_back(base::to_upper(value));
      }
    }
  }
  return methods;
}

bool methods_pass(const std::vector<std::string>& allowed,
                  const std::vector<std::string>& methods) {
  return std::ranges::all_of(methods, [&](const std::string& method) {
    return !is_forbidden_method(method) && (allowed.empty() || names_method(allowed, method));
  });
}

// --- Parts of one rule ---------------------------------------------------------------------

bool paths_pass(const Egress& rule, std::string_view path) {
  if (!rule.encoded_slash && path.contains("%2F")) return false;
  return rule.paths.empty() || std::ranges::any_of(rule.paths, [&](const std::string& pattern) {
           return path_matches(pattern, path);
         });
}

// CGI-style servers read `X_Debug` as X-Debug.
bool same_field(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return c == '_' ? '-' : c; },
      [](char c) { return c == '_' ? '-' : c; });
}

bool headers_pass(const HeaderRules& rules, const Request& request) {
  for (const auto* fields : {&request.headers, &request.dropped}) {
    for (const auto& field : *fields) {
      const std::string& name = field.first;
      if (std::ranges::any_of(rules.forbid,
                              [&name](const std::string& one) { return same_field(one, name); })) {
        return false;
      }
    }
  }
  return std::ranges::all_of(rules.require, [&](const auto& wanted) {
    bool seen = false;
    for (const auto& [name, value] : request.headers) {
      if (name != wanted.first) continue;
      if (value != wanted.second) return false;
      seen = true;
    }
    return seen;
  });
}

// --- Which rules count ---------------------------------------------------------------------

struct Target {
  std::string host;
  std::uint16_t port = 0;
};

// The two halves of "host:port" or "[v6]:port" as the parser wrote it.
Target tcp_target(std::string_view text) {
  const auto colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto port = base::parse_number(text.substr(colon + 1));
  return {std::string(host), static_cast<std::uint16_t>(port.value_or(0))};
}

bool rule_names(const Egress& rule, std::string_view host) {
  if (!rule.tcp.empty()) return tcp_target(rule.tcp).host == host;
  if (rule.host.empty()) return false;
  return host == kHostName ? rule.host == host : host_matches(rule.host, host);
}

std::size_t rule_specificity(const Egress& rule) {
  return rule.tcp.empty() ? specificity(rule.host) : kExact;
}

bool rule_has_port(const Egress& rule, std::uint16_t port) {
  return rule.tcp.empty() ? has_port(rule.ports, port) : tcp_target(rule.tcp).port == port;
}

// Indices of the rules that count for a name; for a pattern, those that are written with it.
std::vector<std::size_t> counting_rules(const Policy& policy, std::string_view host) {
  std::vector<std::size_t> out;
  std::size_t best = 0;
  for (std::size_t i = 0; i < policy.egress.size(); ++i) {
    const Egress& rule = policy.egress[i];
    if (host.starts_with('*') ? rule.host != host : !rule_names(rule, host)) continue;
    const std::size_t narrow = rule_specificity(rule);
    if (narrow > best) out.clear();
    if (narrow >= best) out.push_back(i);
    best = std::max(best, narrow);
  }
  return out;
}

std::vector<std::size_t> with_port(const Policy& policy, std::vector<std::size_t> rules,
                                   std::uint16_t port) {
  std::erase_if(rules, [&](std::size_t i) { return !rule_has_port(policy.egress[i], port); });
  return rules;
}

// Without those that want TLS where it is not spoken.
std::vector<std::size_t> with_scheme(const Policy& policy, std::vector<std::size_t> rules,
                                     Scheme scheme) {
  if (scheme == Scheme::http) {
    std::erase_if(rules, [&](std::size_t i) { return policy.egress[i].tls_only; });
  }
  return rules;
}

// --- Denials -------------------------------------------------------------------------------

bool denies_whole(const Deny& deny) {
  return deny.methods.empty() && deny.paths.empty();
}

bool deny_reaches(const Deny& deny, std::string_view host, std::uint16_t port) {
  return !deny.host.empty() && hosts_intersect(deny.host, host) &&
         (deny.ports.empty() || has_port(deny.ports, port));
}

bool connection_denied(const Policy& policy, std::string_view host, std::uint16_t port) {
  return std::ranges::any_of(policy.deny, [&](const Deny& deny) {
    return denies_whole(deny) && deny_reaches(deny, host, port);
  });
}

bool request_denied(const Policy& policy, const Request& request,
                    const std::vector<std::string>& methods) {
  const std::string loosest = loosest_path(request.path);
  return std::ranges::any_of(policy.deny, [&](const Deny& deny) {
    if (!deny_reaches(deny, request.host.name, request.port)) return false;
    const bool method = deny.methods.empty() || std::ranges::any_of(methods, [&](const auto& one) {
                          return denies_method(deny.methods, one);
                        });
    const bool path = deny.paths.empty() || std::ranges::any_of(deny.paths, [&](const auto& one) {
                        return path_matches(one, request.path) || path_matches(one, loosest);
                      });
    return method && path;
  });
}

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
  return refuse(other_port ? "port" : "host", fix_raw(request));
}

// Whether what goes to that host and port is looked into, whatever its bytes look like.
bool looks_inside(const Policy& policy, std::string_view host, std::uint16_t port) {
  const auto rules = with_port(policy, counting_rules(policy, host), port);
  if (std::ranges::any_of(rules, [&](std::size_t i) { return policy.egress[i].inspects; }))
    return true;
  if (std::ranges::none_of(rules, [&](std::size_t i) { return !policy.egress[i].host.empty(); })) {
    return false;
  }
  return std::ranges::any_of(policy.credentials,
                             [&](const Credential& credential) {
                               return has_port(credential.ports, port) &&
                                      std::ranges::any_of(credential.hosts, [&](const auto& bound) {
                                        return hosts_intersect(bound, host);
                                      });
                             }) ||
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
    return refuse(reason, request.scheme == Scheme::tcp ? fix_raw(request) : fix_host(request));
  }
  for (std::size_t i : rules) {
    if (!policy.egress[i].tcp.empty()) return allow(policy, i, Treatment::tunnel);
  }
  const Treatment treatment = treatment_of(policy, request);
  if (treatment == Treatment::refuse) return refuse("protocol", "");
  return allow(policy, with_scheme(policy, rules, request.scheme).front(), treatment);
}

// Why none of the rules that count allows the request: what the nearest of them lacks.
std::string nearest_reason(const Policy& policy, const std::vector<std::size_t>& rules,
                           const Request& request, const std::vector<std::string>& methods) {
  bool method = false;
  bool path = false;
  for (std::size_t i : rules) {
    const Egress& rule = policy.egress[i];
    const bool this_method = methods_pass(rule.methods, methods);
    const bool this_path = paths_pass(rule, request.path);
    if (this_method && this_path) return "header";
    method = method || this_method;
    path = path || this_path;
  }
  return path || !method ? "method" : "path";
}

}  // namespace

Verdict decide_connection(const Policy& policy, const Request& request) {
  return request.host.is_address ? decide_literal(policy, request) : decide_name(policy, request);
}

Verdict decide_request(const Policy& policy, const Request& request) {
  Verdict connection = decide_connection(policy, request);
  if (!connection.allow || connection.treatment == Treatment::tunnel) return connection;
  const std::vector<std::string> methods = methods_of(request);
  if (request_denied(policy, request, methods)) return refuse("deny-rule", "");
  const auto rules = with_scheme(
      policy, with_port(policy, counting_rules(policy, request.host.name), request.port),
      request.scheme);
  for (std::size_t i : rules) {
    const Egress& rule = policy.egress[i];
    if (methods_pass(rule.methods, methods) && paths_pass(rule, request.path) &&
        headers_pass(rule.headers, request)) {
      return allow(policy, i, Treatment::inspect);
    }
  }
  std::string reason = nearest_reason(policy, rules, request, methods);
  const bool fixable = reason != "header" && !std::ranges::any_of(methods, is_forbidden_method);
  return refuse(std::move(reason), fixable ? fix_request(request, methods) : "");
}

bool covers(const Credential& credential, const Request& request) {
  if (request.host.is_address) return false;
  const std::string& host = request.host.name;
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
  return std::ranges::any_of(policy.egress, [&](const Egress& rule) {
    return !rule.host.empty() && std::ranges::any_of(rule.ports, [&](std::uint16_t port) {
      return needs_inspection(policy, rule.host, port);
    });
  });
}

bool encoded_slash_allowed(const Policy& policy, std::string_view host, std::uint16_t port) {
  const auto rules = with_port(policy, counting_rules(policy, host), port);
  return std::ranges::any_of(rules, [&](std::size_t i) { return policy.egress[i].encoded_slash; });
}

bool name_allowed(const Policy& policy, std::string_view host) {
  if (!blocked_name(host).empty() || host.starts_with('*')) return false;
  for (std::size_t i : counting_rules(policy, host)) {
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
