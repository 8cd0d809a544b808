// Closing a descriptor.
#include "base/fd.h"

#include <unistd.h>

namespace base {

void Fd::reset() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

}  // namespace base
