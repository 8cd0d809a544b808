// How many bytes a rule lets through in one run, counted before they are passed on.
#pragma once

#include <cstdint>

#include "policy/policy.h"

namespace gateway {

// One direction of one rule. All connections of the rule take from the same count, so that many at
// once get no more than one alone.
class Meter {
 public:
  Meter() = default;  // without a bound
  Meter(std::uint64_t& used, std::uint64_t most) : used_(&used), most_(most) {}

  // In bytes; kUnlimited where there is no bound.
  [[nodiscard]] std::uint64_t left() const {
    if (used_ == nullptr || most_ == policy::kUnlimited) return policy::kUnlimited;
    return most_ > *used_ ? most_ - *used_ : 0;
  }
  // False, and nothing is taken, when fewer bytes are left.
  [[nodiscard]] bool take(std::uint64_t bytes) {
    if (bytes > left()) return false;
    if (used_ != nullptr) *used_ += bytes;
    return true;
  }

 private:
  std::uint64_t* used_ = nullptr;
  std::uint64_t most_ = policy::kUnlimited;
};

struct Budget {
  Meter up;
  Meter down;
};

}  // namespace gateway
