// Addresses: their text, their ranges, and what the address guard thinks of each.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "policy/policy.h"

namespace policy {
namespace {

struct Range {
  std::string_view first;
  unsigned bits;
  Guard guard;
  std::string_view reason;
};

constexpr auto kNever = Guard::never;
constexpr auto kPrivate = Guard::private_range;

// RFC 6890 and the special purpose registries, the platforms' own endpoints first: the first range
// that holds the address decides.
constexpr Range kRanges4[] = {
    {"169.254.169.254", 32, kNever, "metadata"},    // nearly every cloud
    {"169.254.170.2", 32, kNever, "metadata"},      // AWS ECS task credentials
    {"169.254.170.23", 32, kNever, "metadata"},     // AWS EKS Pod Identity
    {"169.254.169.250", 31, kNever, "metadata"},    // AWS KMS
    {"169.254.169.252", 31, kNever, "metadata"},    // GKE node metadata, AWS DNS
    {"169.254.169.123", 32, kNever, "metadata"},    // AWS NTP
    {"169.254.171.0", 24, kNever, "metadata"},      // AWS VPC Lattice
    {"169.254.0.23", 32, kNever, "metadata"},       // Tencent
    {"169.254.10.10", 32, kNever, "metadata"},      // Tencent
    {"169.254.42.42", 32, kNever, "metadata"},      // Scaleway
    {"168.63.129.16", 32, kNever, "metadata"},      // Azure, in public space
    {"192.0.0.192", 32, kNever, "metadata"},        // Oracle
    {"100.100.100.200", 32, kNever, "metadata"},    // Alibaba
    {"100.96.0.96", 32, kNever, "metadata"},        // Volcengine
    {"0.0.0.0", 8, kNever, "this-network"},         // RFC 1122 section 3.2.1.3
    {"10.0.0.0", 8, kPrivate, "private"},           // RFC 1918
    {"100.64.0.0", 10, kPrivate, "carrier-nat"},    // RFC 6598
    {"127.0.0.0", 8, kNever, "loopback"},           // RFC 1122
    {"169.254.0.0", 16, kNever, "link-local"},      // RFC 3927
    {"172.16.0.0", 12, kPrivate, "private"},        // RFC 1918
    {"192.0.0.0", 24, kNever, "protocol"},          // RFC 6890
    {"192.0.2.0", 24, kNever, "documentation"},     // RFC 5737
    {"192.31.196.0", 24, kNever, "as112"},          // RFC 7535
    {"192.52.193.0", 24, kNever, "amt"},            // RFC 7450
    {"192.88.99.0", 24, kNever, "6to4"},            // RFC 7526
    {"192.168.0.0", 16, kPrivate, "private"},       // RFC 1918
    {"192.175.48.0", 24, kNever, "as112"},          // RFC 7534
    {"198.18.0.0", 15, kNever, "benchmark"},        // RFC 2544
    {"198.51.100.0", 24, kNever, "documentation"},  // RFC 5737
    {"203.0.113.0", 24, kNever, "documentation"},   // RFC 5737
    {"224.0.0.0", 4, kNever, "multicast"},          // RFC 5771
    {"255.255.255.255", 32, kNever, "broadcast"},   // RFC 919
    {"240.0.0.0", 4, kNever, "reserved"},           // RFC 1112
};

// What no rule opens, and the one range that a rule may. Whatever is in neither list and outside of
// 2000::/3 is refused all the same.
constexpr Range kRanges6[] = {
    {"fd00:ec2::254", 128, kNever, "metadata"},       // AWS
    {"fd00:ec2::23", 128, kNever, "metadata"},        // AWS EKS Pod Identity
    {"fd00:ec2::253", 128, kNever, "metadata"},       // AWS DNS
    {"fd00:ec2::123", 128, kNever, "metadata"},       // AWS NTP
    {"fd00:ec2::250", 127, kNever, "metadata"},       // AWS KMS
    {"fd00:ec2:80::", 64, kNever, "metadata"},        // AWS VPC Lattice
    {"fd20:ce::254", 128, kNever, "metadata"},        // GCP
    {"fd00:c1::a9fe:a9fe", 128, kNever, "metadata"},  // Oracle
    {"fd00:a9fe:a9fe::1", 128, kNever, "metadata"},   // Linode
    {"fd00:42::42", 128, kNever, "metadata"},         // Scaleway
    {"fe80::a9fe:a9fe", 128, kNever, "metadata"},     // OpenStack
    {"::", 128, kNever, "unspecified"},               // RFC 4291
    {"::1", 128, kNever, "loopback"},                 // RFC 4291
    {"100::", 64, kNever, "discard"},                 // RFC 6666
    {"100:0:0:1::", 64, kNever, "dummy"},             // RFC 9780
    {"2001::", 23, kNever, "protocol"},               // RFC 2928
    {"2001:db8::", 32, kNever, "documentation"},      // RFC 3849
    {"2620:4f:8000::", 48, kNever, "as112"},          // RFC 7534
    {"3ffe::", 16, kNever, "6bone"},                  // RFC 3701
    {"3fff::", 20, kNever, "documentation"},          // RFC 9637
    {"5f00::", 16, kNever, "segment-routing"},        // RFC 9602
    {"fc00::", 7, kPrivate, "unique-local"},          // RFC 4193
    {"fe80::", 10, kNever, "link-local"},             // RFC 4291
    {"fec0::", 10, kNever, "site-local"},             // RFC 3879
    {"ff00::", 8, kNever, "multicast"},               // RFC 4291
};

// Forms that carry an IPv4 address, which is told in the reason. They are never dialled: a public
// one has its own IPv4 form, and no NAT64 prefix has been learned from the host.
struct Embedding {
  std::string_view first;
  unsigned bits;
  std::string_view reason;
  std::size_t offset;  // of the four bytes
  std::uint8_t mask;   // each byte is XORed with it
};
constexpr Embedding kEmbeddings[] = {
    {"::ffff:0:0", 96, "ipv4-mapped", 12, 0},        // RFC 4291
    {"::ffff:0:0:0", 96, "ipv4-translated", 12, 0},  // RFC 2765
    {"64:ff9b::", 96, "nat64", 12, 0},               // RFC 6052
    {"64:ff9b:1::", 48, "nat64", 12, 0},             // RFC 8215
    {"2002::", 16, "6to4", 2, 0},                    // RFC 3056
    {"2001::", 32, "teredo", 12, 0xff},              // RFC 4380: the client's address, inverted
    {"::", 96, "ipv4-compatible", 12, 0},            // RFC 4291 section 2.5.5.1
};

struct Compiled {
  Cidr cidr;
  Guard guard;
  std::string_view reason;
};

Cidr literal(std::string_view first, unsigned bits) {
  const auto address = parse_address(first);
  if (!address) std::abort();
  return {*address, bits};
}

std::vector<Compiled> compile(std::span<const Range> ranges) {
  std::vector<Compiled> out;
  for (const Range& range : ranges) {
    out.push_back({literal(range.first, range.bits), range.guard, range.reason});
  }
  return out;
}

const Compiled* find(const std::vector<Compiled>& ranges, const Address& address) {
  const auto at = std::ranges::find_if(
      ranges, [&](const Compiled& range) { return contains(range.cidr, address); });
  return at == ranges.end() ? nullptr : &*at;
}

Judgement judge_v4(const Address& address) {
  static const std::vector<Compiled> kCompiled = compile(kRanges4);
  const Compiled* range = find(kCompiled, address);
  if (range == nullptr) return {Guard::open, ""};
  return {range->guard, std::string(range->reason)};
}

// The judgement of an IPv6 address that carries an IPv4 one: never, with the reason of the address
// inside where that one is not public either.
Judgement embedded(const Address& address, std::string_view form, std::size_t offset,
                   std::uint8_t mask) {
  Address inner;
  for (std::size_t i = 0; i < 4; ++i) {
    inner.bytes[i] = static_cast<std::uint8_t>(address.bytes[offset + i] ^ mask);
  }
  const Judgement judgement = judge_v4(inner);
  return {Guard::never, judgement.guard == Guard::open ? std::string(form) : judgement.reason};
}

// RFC 5214: an interface identifier of [02]00:5efe followed by an IPv4 address.
bool is_isatap(const Address& address) {
  const auto& b = address.bytes;
  return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe;
}

bool is_global_unicast(const Address& address) {
  return address.bytes[0] >> 5 == 1;
}

Judgement judge_v6(const Address& address) {
  static const std::vector<Compiled> kCompiled = compile(kRanges6);
  const Compiled* range = find(kCompiled, address);
  const bool plain_special =
      range != nullptr && (range->cidr.bits == 128 || range->reason == "metadata");
  if (plain_special) return {range->guard, std::string(range->reason)};
  for (const Embedding& form : kEmbeddings) {
    if (contains(literal(form.first, form.bits), address)) {
      return embedded(address, form.reason, form.offset, form.mask);
    }
  }
  if (is_isatap(address)) return embedded(address, "isatap", 12, 0);
  if (range != nullptr) return {range->guard, std::string(range->reason)};
  if (!is_global_unicast(address)) return {Guard::never, "not-global"};
  return {Guard::open, ""};
}

}  // namespace

base::Result<Address> parse_address(std::string_view text) {
  Address address;
  const std::string copy(text);
  if (copy.find('\0') == std::string::npos && copy.size() < INET6_ADDRSTRLEN) {
    if (inet_pton(AF_INET, copy.c_str(), address.bytes.data()) == 1) return address;
    address.v6 = true;
    address.bytes = {};
    if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) return address;
  }
  return base::bad_input(base::printable(text), "no IP address",
                         "expected 192.0.2.1 or 2001:db8::1");
}

std::string to_string(const Address& address) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(address.v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

base::Result<Cidr> parse_cidr(std::string_view text) {
  const auto slash = text.find('/');
  Cidr cidr;
  cidr.address = TRY(parse_address(text.substr(0, slash)));
  const unsigned most = cidr.address.v6 ? 128 : 32;
  cidr.bits = most;
  if (slash != std::string_view::npos) {
    const auto bits = base::parse_number(text.substr(slash + 1));
    if (!bits || *bits > most) {
      return base::bad_input(base::printable(text), "no prefix length",
                             "expected a number from 0 to " + std::to_string(most));
    }
    cidr.bits = static_cast<unsigned>(*bits);
  }
  Cidr start = cidr;
  for (unsigned bit = cidr.bits; bit < most; ++bit) {
    start.address.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  }
  if (start != cidr) {
    return base::bad_input(base::printable(text), "bits are set after the prefix",
                           "expected " + to_string(start));
  }
  return cidr;
}

std::string to_string(const Cidr& cidr) {
  return to_string(cidr.address) + "/" + std::to_string(cidr.bits);
}

bool contains(const Cidr& cidr, const Address& address) {
  if (cidr.address.v6 != address.v6 || cidr.bits > 128) return false;
  const unsigned whole = cidr.bits / 8;
  if (std::memcmp(cidr.address.bytes.data(), address.bytes.data(), whole) != 0) return false;
  const unsigned rest = cidr.bits % 8;
  if (rest == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff00U >> rest);
  return ((cidr.address.bytes[whole] ^ address.bytes[whole]) & mask) == 0;
}

Judgement judge(const Address& address) {
  return address.v6 ? judge_v6(address) : judge_v4(address);
}

}  // namespace policy
