// Where a connection was going: a name that an address of the pool stands for, or a literal
// address.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gateway/budget.h"
#include "gateway/core.h"

namespace gateway {

struct Target {
  policy::Host host;
  std::uint16_t port = 0;
  std::optional<policy::Address> literal;  // set when the client named an address, no name
  // "unknown-address": a pool address that stands for nothing; "too-many-names".
  std::string problem;
  std::optional<Vetted> vetted;  // judged already; good for one connection
};
[[nodiscard]] Target find_target(const Core& core, const os::Endpoint& destination);
// Where a client asked the explicit proxy to go. A literal address of the pool is the name that it
// stands for. bad_input: a host that two parsers could read differently.
[[nodiscard]] base::Result<Target> find_target(Core& core, std::string_view host,
                                               std::uint16_t port);

// The target's addresses, resolved once and judged. not_found or peer when its name has none.
asio::awaitable<base::Result<Vetted>> find_route(Core& core, Target& target,
                                                 const policy::Egress* rule);

// Connects to the first passed address that answers and makes it connection.upstream; which one is
// returned.
asio::awaitable<base::Result<policy::Address>> connect_to(Connection& connection, Vetted vetted,
                                                          std::uint16_t port);
// The same, through the policy's upstream proxy where it serves that host and address. Only after
// the decision was recorded.
asio::awaitable<base::Result<policy::Address>> dial(Connection& connection, Vetted vetted,
                                                    std::uint16_t port);

// Closes connection.upstream, if there is one.
void drop_upstream(Connection& connection);
// WHERE of an error of dial() whose WHAT is a word of egress.ended by itself.
inline constexpr const char* kDialError = "dial";
// Why dial() failed, in the words of egress.ended: "unreachable", "policy" (it has changed
// meanwhile), or what is said of the upstream proxy.
[[nodiscard]] std::string dial_problem(const base::Error& error);

// The rule that a verdict names, or nullptr.
[[nodiscard]] const policy::Egress* rule_of(const Core& core, const policy::Verdict& verdict);
// What that rule's budgets have been used up by, or nullptr. Lives as long as core.
[[nodiscard]] Used* used_by(const Core& core, const policy::Verdict& verdict);
// Its max_up and max_down; without a bound where there is no rule. Counts in core, which must
// outlive it.
[[nodiscard]] Budget budget_of(Core& core, const policy::Verdict& verdict);
// "allow", "deny", or "audit": let go by network.mode = "audit" alone.
[[nodiscard]] std::string verdict_word(const policy::Verdict& verdict);
// The report's kind for a reason of the matcher.
[[nodiscard]] std::string kind_of(const std::string& reason);

}  // namespace gateway
