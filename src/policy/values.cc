// Sizes and durations as people write them, and back.
#include "policy/values.h"

#include <limits>
#include <span>

#include "base/base.h"

namespace policy {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

constexpr std::array<Unit, 10> kSizes = {{{"TiB", 1ULL << 40},
                                          {"GiB", 1ULL << 30},
                                          {"MiB", 1ULL << 20},
                                          {"KiB", 1ULL << 10},
                                          {"TB", 1'000'000'000'000},
                                          {"GB", 1'000'000'000},
                                          {"MB", 1'000'000},
                                          {"KB", 1'000},
                                          {"B", 1},
                                          {"", 1}}};
constexpr std::array<Unit, 5> kBinarySizes = {
    {{"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}, {"", 1}}};
constexpr std::array<Unit, 5> kDurations = {
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

std::optional<std::uint64_t> times(std::string_view digits, std::uint64_t factor) {
  const auto number = base::parse_number(digits);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
  return *number * factor;
}

std::size_t digits_of(std::string_view text) {
  const auto end = text.find_first_not_of("0123456789");
  return end == std::string_view::npos ? text.size() : end;
}

// The largest unit that divides the number, so that the text says exactly the same.
std::string with_unit(std::uint64_t number, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.factor == 0) {
      return std::to_string(number / unit.factor) + std::string(unit.name);
    }
  }
  return "0";
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const std::size_t digits = digits_of(text);
  const Unit* unit = find_unit(kSizes, text.substr(digits));
  return unit == nullptr ? std::nullopt : times(text.substr(0, digits), unit->factor);
}

std::optional<std::uint64_t> parse_duration(std::string_view text) {
  std::uint64_t total = 0;
  std::uint64_t last_factor = std::numeric_limits<std::uint64_t>::max();
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    const std::size_t digits = digits_of(text);
    const auto letters = text.substr(digits).find_first_of("0123456789");
    const std::string_view name = text.substr(digits, letters);
    const Unit* unit = find_unit(kDurations, name);
    if (unit == nullptr || unit->factor >= last_factor) return std::nullopt;
    const auto part = times(text.substr(0, digits), unit->factor);
    if (!part || *part > std::numeric_limits<std::uint64_t>::max() - total) return std::nullopt;
    total += *part;
    last_factor = unit->factor;
    text.remove_prefix(digits + name.size());
  }
  return total;
}

std::string size_text(std::uint64_t bytes) {
  return bytes == kUnlimited ? "unlimited" : with_unit(bytes, kBinarySizes);
}

std::string duration_text(std::uint64_t ms) {
  if (ms == kUnlimited) return "unlimited";
  return ms == 0 ? "0s" : with_unit(ms, kDurations);
}

std::string_view to_string(Tier tier) {
  return name_of(kTiers, tier);
}
std::string_view to_string(Code code) {
  return name_of(kCodes, code);
}
std::string_view to_string(Action action) {
  return name_of(kActions, action);
}
std::string_view to_string(SeccompProfile profile) {
  return name_of(kProfiles, profile);
}
std::string_view to_string(MintKind kind) {
  return kind == MintKind::none ? "none" : name_of(kMints, kind);
}

}  // namespace policy
