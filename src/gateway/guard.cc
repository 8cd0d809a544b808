// Ranges are judged by policy::judge; here come the addresses that only this host can know.
#include "gateway/guard.h"

#include <algorithm>
#include <cstring>

#include "gateway/nat64.h"

namespace gateway {
namespace {

bool inside(const os::Network& network, const policy::Address& address) {
  const policy::Cidr cidr{.address = {.v6 = network.v6, .bytes = network.address},
                          .bits = network.bits};
  return policy::contains(cidr, address);
}

bool within(const std::vector<os::Network>& networks, const policy::Address& address) {
  return std::ranges::any_of(networks,
                             [&](const auto& network) { return inside(network, address); });
}

// ::ffff:a.b.c.d is dialled as a.b.c.d, so it is compared as that.
policy::Address unmapped(const policy::Address& address) {
  static constexpr std::array<std::uint8_t, 12> kPrefix = {0, 0, 0, 0, 0,    0,
                                                           0, 0, 0, 0, 0xff, 0xff};
  if (!address.v6 || !std::ranges::equal(kPrefix, std::span(address.bytes).first<12>())) {
    return address;
  }
  policy::Address v4;
  std::memcpy(v4.bytes.data(), address.bytes.data() + 12, 4);
  return v4;
}

bool loopback(const policy::Address& address) {
  static const auto kLoopback6 = policy::parse_address("::1");
  return address.v6 ? address == *kLoopback6 : address.bytes[0] == 127;
}

}  // namespace

os::Endpoint to_endpoint(const policy::Address& address, std::uint16_t port) {
  return {.v6 = address.v6, .address = address.bytes, .port = port};
}

policy::Address to_address(const os::Endpoint& endpoint) {
  return {.v6 = endpoint.v6, .bytes = endpoint.address};
}

policy::Address Guard::as_dialled(const policy::Address& address) const {
  for (const policy::Cidr& prefix : nat64_) {
    if (const auto inner = carried_v4(prefix, address)) return *inner;
  }
  return address;
}

std::string Guard::refusal(const policy::Egress* rule, const policy::Host& host, std::uint16_t port,
                           const policy::Address& told, const os::LocalNetworks& local) const {
  if (policy::address_denied(plan_->policy, told, port)) return "deny-rule";
  const policy::Address address = as_dialled(told);
  if (policy::address_denied(plan_->policy, address, port)) return "deny-rule";
  // The host's own services, by their one name; the rule has named the port (contract).
  if (!host.is_address && host.name == policy::kHostName) return loopback(address) ? "" : "own";
  const policy::Judgement judgement = policy::judge(address);
  if (judgement.guard == policy::Guard::never) return judgement.reason;
  const bool opened = rule != nullptr && policy::range_opened(plan_->policy, *rule, address);
  if (judgement.guard == policy::Guard::private_range && !opened) return judgement.reason;
  const policy::Address plain = unmapped(address);
  if (within(local.own, plain)) return "own-address";
  if (within(local.attached, plain) && !opened) return "attached-network";
  return {};
}

Vetted Guard::callers_own_proxy(std::span<const policy::Address> addresses) {
  Vetted vetted;
  for (const policy::Address& address : addresses) vetted.passed.push_back(Passed(address));
  return vetted;
}

base::Result<Vetted> Guard::vet(const policy::Egress* rule, const policy::Host& host,
                                std::uint16_t port,
                                std::span<const policy::Address> addresses) const {
  const bool guarded = plan_->protections.contains(plan::Protection::address_guard);
  const os::LocalNetworks* local = guarded ? TRY(local_()) : nullptr;
  Vetted vetted;
  for (const bool v6 : {false, true}) {
    for (const policy::Address& address : addresses) {
      if (address.v6 != v6) continue;
      const std::string reason =
          guarded ? refusal(rule, host, port, address, *local) : std::string();
      if (reason.empty()) {
        vetted.passed.push_back(Passed(address));
      } else if (vetted.reason.empty()) {
        vetted.reason = reason;
        vetted.refused = policy::to_string(address);
      }
    }
  }
  return vetted;
}

}  // namespace gateway
