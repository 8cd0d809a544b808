// The name of a Step's type, as plan.h spells it.
#pragma once

#include "plan/plan.h"

namespace sandbox {

[[nodiscard]] std::string_view step_name(const plan::Step& step);

}  // namespace sandbox
