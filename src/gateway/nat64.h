// Which IPv6 addresses a translator of this network turns into IPv4 ones: to it they are the IPv4
// address that they carry, so they are judged as that (N86).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace gateway {

struct Core;

// The name whose only addresses are 192.0.0.170 and 192.0.0.171, so that an IPv6 answer for it
// shows the prefix that a DNS64 puts in front (RFC 7050).
inline constexpr const char* kNat64Name = "ipv4only.arpa";

// The prefixes in the answers for that name, by the places where RFC 6052 puts the four bytes.
[[nodiscard]] std::vector<policy::Cidr> nat64_prefixes(std::span<const policy::Address> answers);
// The IPv4 address that an address below the prefix carries; nullopt when it is not below it.
[[nodiscard]] std::optional<policy::Address> carried_v4(const policy::Cidr& prefix,
                                                        const policy::Address& address);

// Makes the guard know this network's prefixes: asked once, by the first name that has an IPv6
// address. False when nobody can tell; then no IPv6 address may be dialled.
boost::asio::awaitable<bool> learn_nat64(Core& core);

}  // namespace gateway
