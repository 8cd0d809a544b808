// Where secrets live: guarded heap pages of libsodium.
#include "base/secret.h"

#include <sodium.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace base {

Secret::Secret(std::string_view bytes) : size_(bytes.size()) {
  if (size_ == 0) return;
  if (sodium_init() < 0) std::abort();
  bytes_ = static_cast<char*>(sodium_malloc(size_));
  // No locked memory means no place for a secret: end here rather than hold it in the open.
  if (bytes_ == nullptr) std::abort();
  std::memcpy(bytes_, bytes.data(), size_);
}

Secret::Secret(Secret&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    if (bytes_ != nullptr) sodium_free(bytes_);
    bytes_ = std::exchange(other.bytes_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Secret::~Secret() {
  if (bytes_ != nullptr) sodium_free(bytes_);
}

void wipe(std::string& bytes) {
  bytes.resize(bytes.capacity());
  sodium_memzero(bytes.data(), bytes.size());
  bytes.clear();
}

}  // namespace base
