// Module sandbox's right to call into priv.
#pragma once

#include "priv/priv.h"

namespace sandbox {

class Rights {
 public:
  [[nodiscard]] static priv::Badge badge() { return {}; }
};

}  // namespace sandbox
