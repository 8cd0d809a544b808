// Which rules count for a name and a port, what each of them passes, and what the denials reach.
#include "policy/counting.h"

#include <algorithm>

#include "policy/path.h"
#include "policy/pattern.h"

namespace policy {

// --- Methods -------------------------------------------------------------------------------

// Never a matter of policy: they reflect credentials or open tunnels inside of tunnels.
bool is_forbidden_method(std::string_view method) {
  const std::string known = base::to_upper(method);
  return known == "TRACE" || known == "TRACK" || known == "CONNECT";
}

namespace {

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

}  // namespace

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

namespace {

// CGI-style servers read `X_Debug` as X-Debug.
bool same_field(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return c == '_' ? '-' : c; },
      [](char c) { return c == '_' ? '-' : c; });
}

bool is_forbidden_field(const HeaderRules& rules, std::string_view name) {
  return std::ranges::any_of(rules.forbid,
                             [&](const std::string& one) { return same_field(one, name); });
}

}  // namespace

bool headers_pass(const HeaderRules& rules, const Request& request) {
  for (const auto* fields : {&request.headers, &request.dropped}) {
    for (const auto& [name, value] : *fields) {
      if (is_forbidden_field(rules, name)) return false;
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

TcpTarget tcp_target(std::string_view text) {
  const auto colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const auto port = base::parse_number(text.substr(colon + 1));
  return {std::string(host), static_cast<std::uint16_t>(port.value_or(0))};
}

namespace {

bool rule_names(const Egress& rule, std::string_view host) {
  if (!rule.tcp.empty()) return tcp_target(rule.tcp).host == host;
  if (rule.host.empty()) return false;
  return host == kHostName ? rule.host == host : host_matches(rule.host, host);
}

std::size_t rule_specificity(const Egress& rule) {
  return rule.tcp.empty() ? specificity(rule.host) : kExact;
}

}  // namespace

bool rule_has_port(const Egress& rule, std::uint16_t port) {
  return rule.tcp.empty() ? has_port(rule.ports, port) : tcp_target(rule.tcp).port == port;
}

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

}  // namespace policy
