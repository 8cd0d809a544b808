// cerco-init as the sandbox gets it.
#pragma once

#include <string>

#include "base/base.h"

namespace sandbox {

// The program at `path` in sealed memory: no process inside can reach, let alone change, a file of
// the host through /proc/1/exe (CVE-2019-5736).
[[nodiscard]] base::Result<base::Fd> init_program(const std::string& path);

}  // namespace sandbox
