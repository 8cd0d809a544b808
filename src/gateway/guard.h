// The address guard: which of a name's addresses may be dialled.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/base.h"
#include "os/os.h"
#include "plan/plan.h"
#include "policy/policy.h"

namespace gateway {

[[nodiscard]] os::Endpoint to_endpoint(const policy::Address& address, std::uint16_t port);
[[nodiscard]] policy::Address to_address(const os::Endpoint& endpoint);

// An address that passed the guard. Only the guard makes one, and only one can be dialled, so that
// no address is dialled that was not judged (N79).
class Passed {
 public:
  [[nodiscard]] const policy::Address& address() const { return address_; }
  [[nodiscard]] os::Endpoint at(std::uint16_t port) const { return to_endpoint(address_, port); }

 private:
  friend class Guard;
  explicit Passed(policy::Address address) : address_(address) {}
  policy::Address address_;
};

struct Vetted {
  std::vector<Passed> passed;  // IPv4 first; may be empty
  std::string reason;          // why the first refused one was, "" when none was
  std::string refused;         // that address as text
  bool direct = false;         // of a host that an upstream proxy does not serve
  std::uint64_t revision = 0;  // of the policy that it was judged by
  [[nodiscard]] bool mixed() const { return !passed.empty() && !reason.empty(); }
};

// What holds on this host now; asked at each use.
using LocalView = std::function<base::Result<const os::LocalNetworks*>()>;

class Guard {
 public:
  // `plan` must outlive the guard. Without Protection::address_guard everything passes.
  Guard(const plan::Plan& plan, LocalView local) : plan_(&plan), local_(std::move(local)) {}

  // Judges the addresses that `host` has, to be dialled at `port` for the rule that allows it
  // (nullptr: none). What a [[deny]] with a cidr holds is refused first, whatever the host; its
  // reason is "deny-rule". An error when the host's own addresses cannot be read: then nothing may
  // be dialled.
  [[nodiscard]] base::Result<Vetted> vet(const policy::Egress* rule, const policy::Host& host,
                                         std::uint16_t port,
                                         std::span<const policy::Address> addresses) const;
  // The addresses of the upstream proxy that the caller named: only for dial_by_proxy(), which asks
  // it for addresses that vet() let pass.
  [[nodiscard]] static Vetted callers_own_proxy(std::span<const policy::Address> addresses);
  // What lies below these prefixes is judged as the IPv4 address that it carries (N86).
  void translates(std::vector<policy::Cidr> prefixes) { nat64_ = std::move(prefixes); }

 private:
  [[nodiscard]] policy::Address as_dialled(const policy::Address& address) const;

  [[nodiscard]] std::string refusal(const policy::Egress* rule, const policy::Host& host,
                                    std::uint16_t port, const policy::Address& told,
                                    const os::LocalNetworks& local) const;

  const plan::Plan* plan_;
  LocalView local_;
  std::vector<policy::Cidr> nat64_;
};

}  // namespace gateway
