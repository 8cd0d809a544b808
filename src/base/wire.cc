// The parts of Reader that do not depend on the value's type.
#include "base/wire.h"

namespace base {

std::uint64_t Reader::number() {
  if (!good_ || rest_.size() < 8) {
    good_ = false;
    return 0;
  }
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) {
    value |=
        static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[static_cast<std::size_t>(i)]))
        << (8 * i);
  }
  rest_.remove_prefix(8);
  return value;
}

std::uint64_t Reader::count() {
  const std::uint64_t value = number();
  // An element takes at least one byte, except an empty struct, which no frame has.
  if (value > rest_.size()) {
    good_ = false;
    return 0;
  }
  return value;
}

void Reader::get(std::string& value) {
  const std::uint64_t size = number();
  value.clear();
  if (!good_ || size > rest_.size()) {
    good_ = false;
    return;
  }
  value.assign(rest_.substr(0, size));
  rest_.remove_prefix(size);
}

}  // namespace base
