// Where secrets live: guarded heap pages of libsodium.
#include "base/secret.h"

#include <sodium.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace base {

Result<Secret> Secret::hold(std::string_view bytes) {
  Secret secret;
  if (bytes.empty()) return secret;
  if (sodium_init() < 0) std::abort();
  secret.bytes_ = static_cast<char*>(sodium_malloc(bytes.size()));
  if (secret.bytes_ == nullptr) return system_error("room for a secret");
  secret.size_ = bytes.size();
  // sodium_malloc locks its pages too, but keeps it to itself when the kernel refuses; to lock them
  // again costs nothing of the limit. The call itself, since sanitizers make mlock(3) do nothing.
  if (::syscall(SYS_mlock, secret.bytes_, secret.size_) != 0) {
    const int number = errno;
    Error error = {.kind = Kind::missing,
                   .number = number,
                   .where = "secret",
                   .what = "its memory cannot be locked against swapping",
                   .expected = "expected a larger RLIMIT_MEMLOCK (ulimit -l)"};
    return std::unexpected(std::move(error));
  }
  std::memcpy(secret.bytes_, bytes.data(), secret.size_);
  return secret;
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
