// A file that is written from its beginning to its end and keeps holes for its zeros.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/base.h"

namespace os {

// Blocks of zeros are passed over, so that they take no room where the file system knows holes:
// what a copy takes is what it holds, however long it says to be. The file must be new and empty.
class SparseWriter {
 public:
  explicit SparseWriter(int fd) : fd_(fd) {}
  // The next bytes; ENOSPC and the like come back as errors, after which the file is not whole.
  [[nodiscard]] base::Status write(std::string_view bytes, std::string_view what);
  // After the last byte: gives a file that ends in a hole its length.
  [[nodiscard]] base::Status end(std::string_view what);

 private:
  int fd_;
  std::uint64_t at_ = 0;
  bool hole_ = false;  // the last bytes were passed over
};

}  // namespace os
