// What the credentials of a whole policy must keep to: a binding grants no reach.
#include <fmt/format.h>

#include <algorithm>

#include "policy/path.h"
#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

bool has(const std::vector<std::string>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool has(const std::vector<std::uint16_t>& list, std::uint16_t port) {
  return std::ranges::find(list, port) != list.end();
}

std::string path_of(std::size_t index, std::string_view key) {
  return fmt::format("credential[{}].{}", index, key);
}

// The host rules that count for every name of a pattern: the narrowest that contain it.
std::vector<const Egress*> rules_for(const Policy& policy, std::string_view host) {
  std::vector<const Egress*> out;
  std::size_t best = 0;
  for (const Egress& rule : policy.egress) {
    if (rule.host.empty() || !host_contains(rule.host, host)) continue;
    if (host == kHostName && rule.host != host) continue;
    const std::size_t narrow = specificity(rule.host);
    if (narrow > best) out.clear();
    if (narrow >= best) out.push_back(&rule);
    best = std::max(best, narrow);
  }
  return out;
}

bool rule_allows(const Egress& rule, std::uint16_t port, const std::string& method,
                 const std::string& path) {
  const bool method_ok = rule.methods.empty() || has(rule.methods, method) ||
                         (method == "HEAD" && has(rule.methods, "GET"));
  const bool path_ok =
      rule.paths.empty() || std::ranges::any_of(rule.paths, [&](const std::string& wide) {
        return path_contains(wide, path);
      });
  const bool slash_ok = rule.encoded_slash || !path.contains("%2F");
  return has(rule.ports, port) && method_ok && path_ok && slash_ok;
}

// The bound patterns, and the narrower ones of the rules below them, since there only these count.
std::vector<std::string> hosts_to_check(const Policy& policy, const Credential& credential) {
  std::vector<std::string> hosts = credential.hosts;
  for (const Egress& rule : policy.egress) {
    const bool below = std::ranges::any_of(credential.hosts, [&](const std::string& bound) {
      return !rule.host.empty() && rule.host != bound && host_contains(bound, rule.host);
    });
    if (below && !has(hosts, rule.host)) hosts.push_back(rule.host);
  }
  return hosts;
}

std::unexpected<base::Error> outside(Reading& reading, std::size_t index, const std::string& what) {
  return base::bad_input(
      reading.origins[path_of(index, "hosts")],
      fmt::format("credential[{}]: {} lies outside of every [[egress]] rule", index, what),
      "expected a rule that allows it, or a narrower binding");
}

// A session lies within raw rules alone.
base::Status check_raw_reach(Reading& reading, const Policy& policy, std::size_t index) {
  const Credential& credential = policy.credentials[index];
  for (const std::string& host : credential.hosts) {
    for (const std::uint16_t port : credential.ports) {
      const std::string place = fmt::format("{}:{}", host, port);
      if (std::ranges::find(policy.egress, place, &Egress::tcp) != policy.egress.end()) continue;
      return base::bad_input(
          reading.origins[path_of(index, "hosts")],
          fmt::format("credential[{}]: {} lies outside of every [[egress]] rule with tcp", index,
                      place),
          fmt::format("expected a rule with tcp = \"{}\"", place));
    }
  }
  return {};
}

base::Status check_reach(Reading& reading, const Policy& policy, std::size_t index) {
  const Credential& credential = policy.credentials[index];
  if (credential.inject.kind == InjectKind::postgres)
    return check_raw_reach(reading, policy, index);
  for (const std::string& host : hosts_to_check(policy, credential)) {
    const auto rules = rules_for(policy, host);
    for (std::uint16_t port : credential.ports) {
      for (const std::string& method : credential.methods) {
        for (const std::string& path : credential.paths) {
          const bool inside = std::ranges::any_of(
              rules, [&](const Egress* rule) { return rule_allows(*rule, port, method, path); });
          if (!inside)
            return outside(reading, index, fmt::format("{} {}:{}{}", method, host, port, path));
        }
      }
    }
  }
  return {};
}

base::Status check_clear(Reading& reading, const Credential& credential, std::size_t index) {
  const bool own = std::ranges::all_of(credential.hosts,
                                       [](const std::string& host) { return host == kHostName; });
  if (own || !has(credential.ports, 80)) return {};
  return base::bad_input(
      reading.origins[path_of(index, "ports")],
      fmt::format("credential[{}]: port 80 is plain HTTP, and a credential never goes in the clear",
                  index),
      fmt::format("expected port 443, or the host {} alone", kHostName));
}

template <class T, class F>
bool any_pair(const std::vector<T>& a, const std::vector<T>& b, F both) {
  return std::ranges::any_of(a, [&](const T& one) {
    return std::ranges::any_of(b, [&](const T& other) { return both(one, other); });
  });
}

bool same_method(const std::string& a, const std::string& b) {
  return a == b || (a == "GET" && b == "HEAD") || (a == "HEAD" && b == "GET");
}

std::string place_in_request(const Inject& inject) {
  switch (inject.kind) {
    case InjectKind::header:
      return inject.header;
    case InjectKind::basic:
      return "authorization";
    case InjectKind::query:
      return "the parameter " + inject.field;
    case InjectKind::path:
      return fmt::format("segment {}", inject.segment);
    case InjectKind::body:
      return "the field " + inject.field;
    case InjectKind::mtls:
      return "the handshake";
    case InjectKind::sigv4:
      return "authorization";
    case InjectKind::postgres:
      return "the session of " + inject.user;
  }
  return {};
}

// Some request would get both secrets into one place without having asked for either.
bool collide(const Credential& a, const Credential& b) {
  const auto session = [](const Credential& one) {
    return one.inject.kind == InjectKind::postgres;
  };
  if (session(a) && session(b)) {
    return a.inject.user == b.inject.user && any_pair(a.hosts, b.hosts, std::equal_to<>()) &&
           any_pair(a.ports, b.ports, std::equal_to<>());
  }
  return !a.require && !b.require && place_in_request(a.inject) == place_in_request(b.inject) &&
         any_pair(a.hosts, b.hosts, hosts_intersect) &&
         any_pair(a.ports, b.ports, std::equal_to<>()) &&
         any_pair(a.methods, b.methods, same_method) && any_pair(a.paths, b.paths, paths_intersect);
}

base::Status check_collisions(Reading& reading, const Policy& policy, std::size_t second) {
  for (std::size_t first = 0; first < second; ++first) {
    if (!collide(policy.credentials[first], policy.credentials[second])) continue;
    return base::bad_input(
        reading.origins[fmt::format("credential[{}]", second)],
        fmt::format("credential[{}]: \"{}\" and \"{}\" both go into {} of the same requests, "
                    "and neither waits for its placeholder",
                    second, policy.credentials[first].name, policy.credentials[second].name,
                    place_in_request(policy.credentials[second].inject)),
        "expected require = true in one of them, or places that differ");
  }
  return {};
}

base::Status check_variables(Reading& reading, const Policy& policy, std::size_t index) {
  const Credential& credential = policy.credentials[index];
  for (const auto& [variable, field] : credential.env) {
    std::string rival;
    if (policy.environment.set.contains(variable)) rival = "environment.set";
    if (has(policy.environment.pass, variable)) rival = "environment.pass";
    for (std::size_t other = 0; other < index; ++other) {
      if (policy.credentials[other].env.contains(variable))
        rival = "credential \"" + policy.credentials[other].name + "\"";
    }
    if (rival.empty()) continue;
    return base::bad_input(reading.origins[path_of(index, "env." + variable)],
                           fmt::format("credential[{}].env.{}: {} gives this variable as well",
                                       index, variable, rival),
                           "expected it from one of the two");
  }
  if (credential.require && credential.env.empty()) {
    reading.warnings.push_back(
        fmt::format("{}: credential[{}]: no env and require = true: nothing inside can name \"{}\"",
                    reading.origins[fmt::format("credential[{}]", index)], index, credential.name));
  }
  return {};
}

// The key that is minted can do what the binding says, and no more.
base::Status check_mint(Reading& reading, const Credential& credential, std::size_t index) {
  const auto judge = [&](const auto& narrowed) -> base::Status {
    if (narrowed) return {};
    const base::Error& error = narrowed.error();
    return base::bad_input(reading.origins[path_of(index, "source")],
                           fmt::format("credential[{}]: {}", index, error.what), error.expected);
  };
  switch (credential.source.mint.kind) {
    case MintKind::github_app:
      return judge(github_grant(credential));
    case MintKind::aws_sts:
      return judge(aws_session_policy(credential));
    case MintKind::gcp:
      return judge(gcp_boundary(credential));
    default:
      return {};
  }
}

}  // namespace

base::Status check_bindings(Reading& reading, const Policy& policy) {
  for (std::size_t i = 0; i < policy.credentials.size(); ++i) {
    for (const std::string& host : policy.credentials[i].hosts) {
      TRY(check_suffix(reading, host, path_of(i, "hosts")));
    }
    TRY(check_clear(reading, policy.credentials[i], i));
    TRY(check_reach(reading, policy, i));
    TRY(check_collisions(reading, policy, i));
    TRY(check_variables(reading, policy, i));
    TRY(check_mint(reading, policy.credentials[i], i));
  }
  return {};
}

}  // namespace policy
