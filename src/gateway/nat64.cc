// RFC 6052 section 2.2: the four bytes follow the prefix and leave out the byte of bits 64 to 71.
#include "gateway/nat64.h"

#include <algorithm>
#include <array>

#include "gateway/core.h"

namespace gateway {
namespace {

constexpr std::array<unsigned, 6> kLengths = {96, 64, 56, 48, 40, 32};
constexpr std::size_t kLeftOut = 8;

policy::Address four_bytes(const policy::Address& address, unsigned bits) {
  policy::Address inner;
  std::size_t at = bits / 8;
  for (std::size_t i = 0; i < 4; ++i, ++at) {
    if (at == kLeftOut) ++at;
    inner.bytes[i] = address.bytes[at];
  }
  return inner;
}

bool well_known(const policy::Address& address) {
  return address.bytes[0] == 192 && address.bytes[1] == 0 && address.bytes[2] == 0 &&
         (address.bytes[3] == 170 || address.bytes[3] == 171);
}

policy::Cidr prefix_of(policy::Address address, unsigned bits) {
  std::fill(address.bytes.begin() + bits / 8, address.bytes.end(), 0);
  return {.address = address, .bits = bits};
}

}  // namespace

std::vector<policy::Cidr> nat64_prefixes(std::span<const policy::Address> answers) {
  std::vector<policy::Cidr> prefixes;
  for (const policy::Address& answer : answers) {
    if (!answer.v6) continue;
    for (const unsigned bits : kLengths) {
      if (!well_known(four_bytes(answer, bits))) continue;
      const policy::Cidr prefix = prefix_of(answer, bits);
      if (std::ranges::find(prefixes, prefix) == prefixes.end()) prefixes.push_back(prefix);
    }
  }
  return prefixes;
}

std::optional<policy::Address> carried_v4(const policy::Cidr& prefix,
                                          const policy::Address& address) {
  if (!address.v6 || !policy::contains(prefix, address)) return std::nullopt;
  return four_bytes(address, prefix.bits);
}

asio::awaitable<bool> learn_nat64(Core& core) {
  if (core.nat64_known) co_return true;
  auto answers = co_await core.resolver.resolve(kNat64Name);
  if (!answers && answers.error().kind != base::Kind::not_found) co_return false;
  if (answers) core.guard.translates(nat64_prefixes(*answers));
  core.nat64_known = true;
  co_return true;
}

}  // namespace gateway
