// The sandbox's own address book: an allowed name gets an address that stands for it in here only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "policy/policy.h"

namespace gateway {

// Where a name can be reached from inside.
struct Place {
  policy::Address v4;
  policy::Address v6;
};

// Names and their addresses, for the life of the sandbox: an address never comes to mean another
// name, so what a client keeps stays true (case N95: the map is this sandbox's alone).
class Names {
 public:
  // `pool_v4` and `pool_v6` come from the Plan's Capture step; `most` names get an address. Errors:
  // bad_input when a pool is no CIDR or too small for `most`.
  [[nodiscard]] static base::Result<Names> make(const std::string& pool_v4,
                                                const std::string& pool_v6, std::size_t most);

  enum class Met { known, new_name };
  struct Given {
    Place place;
    Met met = Met::known;
  };
  // The place of a name, given out at its first call; nullopt when the book is full.
  [[nodiscard]] std::optional<Given> give(std::string_view name);
  // The name that an address of the pool stands for; "" for an address that was never given out.
  [[nodiscard]] std::string_view name_of(const policy::Address& address) const;
  [[nodiscard]] bool in_pool(const policy::Address& address) const;
  [[nodiscard]] bool knows(std::string_view name) const { return index_.contains(name); }
  [[nodiscard]] std::size_t size() const { return names_.size(); }

 private:
  Names(policy::Cidr v4, policy::Cidr v6, std::size_t most) : v4_(v4), v6_(v6), most_(most) {}
  [[nodiscard]] Place place(std::size_t index) const;

  policy::Cidr v4_;
  policy::Cidr v6_;
  std::size_t most_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace gateway
