// Memory that secrets may lie in, and taking a secret out of a memfd.
#pragma once

#include "base/base.h"

namespace os {

// Every page of this process, now and later, stays out of swap (mlockall(2), as pages are touched).
// Raises RLIMIT_MEMLOCK where it may. ENOMEM or EPERM where the limit does not allow it.
[[nodiscard]] base::Status lock_memory();

// The bytes of a memfd, which is emptied unless it is sealed; bad_input past `most` bytes.
[[nodiscard]] base::Result<base::Secret> take_secret(int memfd, std::size_t most);

}  // namespace os
