// Taking a secret out of a memfd.
#pragma once

#include "base/base.h"

namespace os {

// The bytes of a memfd, which is emptied unless it is sealed; bad_input past `most` bytes.
[[nodiscard]] base::Result<base::Secret> take_secret(int memfd, std::size_t most);

}  // namespace os
