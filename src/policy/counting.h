// The parts of the matcher inside the module: what counts, what passes, what is denied.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace policy {

[[nodiscard]] inline bool has_port(const std::vector<std::uint16_t>& ports, std::uint16_t port) {
  return std::ranges::find(ports, port) != ports.end();
}

// TRACE, TRACK and CONNECT, in any case: never a matter of policy.
[[nodiscard]] bool is_forbidden_method(std::string_view method);
// The request's method, and those that a server may take it for because of an override header.
[[nodiscard]] std::vector<std::string> methods_of(const Request& request);
// Whether all of them are allowed; an empty list allows any that is not forbidden.
[[nodiscard]] bool methods_pass(const std::vector<std::string>& allowed,
                                const std::vector<std::string>& methods);
[[nodiscard]] bool paths_pass(const Egress& rule, std::string_view path);
[[nodiscard]] bool headers_pass(const HeaderRules& rules, const Request& request);

struct TcpTarget {
  std::string host;
  std::uint16_t port = 0;
};
// The two halves of "host:port" or "[v6]:port" as the parser wrote it.
[[nodiscard]] TcpTarget tcp_target(std::string_view text);

[[nodiscard]] bool rule_has_port(const Egress& rule, std::uint16_t port);
// Indices of the rules that count for a name; for a pattern, those that are written with it.
[[nodiscard]] std::vector<std::size_t> counting_rules(const Policy& policy, std::string_view host);
[[nodiscard]] std::vector<std::size_t> with_port(const Policy& policy,
                                                 std::vector<std::size_t> rules,
                                                 std::uint16_t port);
// Without those that want TLS where it is not spoken.
[[nodiscard]] std::vector<std::size_t> with_scheme(const Policy& policy,
                                                   std::vector<std::size_t> rules, Scheme scheme);

// A denial of the connection itself, whatever is asked over it.
[[nodiscard]] bool denies_whole(const Deny& deny);
[[nodiscard]] bool deny_reaches(const Deny& deny, std::string_view host, std::uint16_t port);
[[nodiscard]] bool connection_denied(const Policy& policy, std::string_view host,
                                     std::uint16_t port);
[[nodiscard]] bool request_denied(const Policy& policy, const Request& request,
                                  const std::vector<std::string>& methods);

}  // namespace policy
