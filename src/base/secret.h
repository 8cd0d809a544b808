// Bytes that are wiped at their end and that nothing can print.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace base {

// Held in memory that is locked (never swapped out), guarded and left out of core dumps.
// Move-only. There is no stream operator and no formatter on purpose: `reveal()` is the one way
// to the bytes and is easy to find by search.
class Secret {
 public:
  Secret() = default;
  // A copy of `bytes`. `missing` where the kernel locks no more memory (RLIMIT_MEMLOCK): a secret
  // that could reach a swap device is not held at all.
  [[nodiscard]] static base::Result<Secret> hold(std::string_view bytes);
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();

  [[nodiscard]] std::string_view reveal() const { return {bytes_, size_}; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// Overwrites a string's bytes, and those of its spare capacity, then empties it.
void wipe(std::string& bytes);

}  // namespace base
