// Loop devices; within module priv.
#pragma once

#include <string>

#include "base/base.h"

namespace priv {

// A free loop device on `image`, which frees itself when its last user closes it.
[[nodiscard]] base::Result<base::Fd> attach_loop(int image);

}  // namespace priv
