// cerco-init as the sandbox gets it.
#pragma once

#include <cstdint>
#include <string>

#include "base/base.h"

namespace sandbox {

// The program at `path` in sealed memory: no process inside can reach, let alone change, a file of
// the host through /proc/1/exe (CVE-2019-5736). Only `owner` may execute it: a command whose
// interpreter is /proc/self/exe would be it else.
[[nodiscard]] base::Result<base::Fd> init_program(const std::string& path, std::uint32_t owner);

}  // namespace sandbox
