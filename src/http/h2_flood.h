// How much of what costs its sender nothing one HTTP/2 connection may send (CVE-2023-44487,
// CVE-2019-9512 and those around them).
#pragma once

#include <algorithm>
#include <cstdint>

namespace http {

// Holds up to `most`, and gets `each_second` back. Time is the caller's.
class H2Allowance {
 public:
  H2Allowance(std::uint64_t most, std::uint64_t each_second)
      : most_(most * kScale), each_second_(each_second), left_(most * kScale) {}

  void now(std::uint64_t ms) {
    if (ms > last_) give((ms - last_) * each_second_);
    last_ = std::max(last_, ms);
  }
  // For work that the peer has let us do.
  void earn(std::uint64_t count) { give(count * kScale); }
  // False when nothing is left.
  [[nodiscard]] bool take() {
    if (left_ < kScale) return false;
    left_ -= kScale;
    return true;
  }

 private:
  static constexpr std::uint64_t kScale = 1000;  // milliseconds a second
  void give(std::uint64_t amount) { left_ += std::min(amount, most_ - left_); }

  std::uint64_t most_;
  std::uint64_t each_second_;
  std::uint64_t left_;
  std::uint64_t last_ = 0;
};

}  // namespace http
