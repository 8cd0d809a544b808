// Addresses are counted up from the pools' second address; the index in the list is the offset.
#include "gateway/names.h"

namespace gateway {
namespace {

// The first and the last address of a pool are never given out.
constexpr std::uint64_t kFirst = 1;

std::uint32_t word(const policy::Address& address, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | address.bytes[at + i];
  return value;
}

policy::Address shifted(policy::Address address, std::uint32_t offset) {
  const std::size_t at = address.v6 ? 12 : 0;
  std::uint32_t value = word(address, at) + offset;
  for (std::size_t i = 4; i-- > 0; value >>= 8) {
    address.bytes[at + i] = static_cast<std::uint8_t>(value & 0xff);
  }
  return address;
}

base::Result<policy::Cidr> pool(const std::string& text, bool v6, std::size_t most) {
  auto cidr = TRY(policy::parse_cidr(text));
  const unsigned width = v6 ? 128 : 32;
  const unsigned room = width - cidr.bits;
  if (cidr.address.v6 != v6 || room < 2 || (room < 32 && (1ULL << room) < most + 2)) {
    return base::bad_input("address pool " + text, "too small or of the wrong family", {});
  }
  return cidr;
}

}  // namespace

base::Result<Names> Names::make(const std::string& pool_v4, const std::string& pool_v6,
                                std::size_t most) {
  const auto v4 = TRY(pool(pool_v4, false, most));
  const auto v6 = TRY(pool(pool_v6, true, most));
  return Names(v4, v6, most);
}

Place Names::place(std::size_t index) const {
  const auto offset = static_cast<std::uint32_t>(index + kFirst);
  return {.v4 = shifted(v4_.address, offset), .v6 = shifted(v6_.address, offset)};
}

std::optional<Names::Given> Names::give(std::string_view name) {
  const auto found = index_.find(name);
  if (found != index_.end()) return Given{place(found->second), Met::known};
  if (names_.size() >= most_) return std::nullopt;
  index_.emplace(name, names_.size());
  names_.emplace_back(name);
  return Given{place(names_.size() - 1), Met::new_name};
}

std::string_view Names::name_of(const policy::Address& address) const {
  if (!in_pool(address)) return {};
  const std::size_t at = address.v6 ? 12 : 0;
  const policy::Address& first = address.v6 ? v6_.address : v4_.address;
  const std::uint64_t offset = std::uint64_t{word(address, at)} - word(first, at);
  if (offset < kFirst || offset - kFirst >= names_.size()) return {};
  const std::size_t index = offset - kFirst;
  // The bytes between prefix and offset must be the pool's own.
  const Place given = place(index);
  return (address.v6 ? given.v6 : given.v4) == address ? std::string_view(names_[index])
                                                       : std::string_view();
}

bool Names::in_pool(const policy::Address& address) const {
  return policy::contains(address.v6 ? v6_ : v4_, address);
}

}  // namespace gateway
