// A change of the policy while its sandbox runs.
#pragma once

#include "gateway/core.h"

namespace gateway {

// Puts `next` in force, a change of `plan` (the one that core refers to) as plan::change() makes
// it: the next request and connection are judged by it. What goes on and would not be allowed now
// ends at once, and with it what went out with a credential that no longer covers it; a rule that
// stays keeps what its budgets have been used up by.
void put_in_force(Core& core, plan::Plan& plan, plan::Plan next);

}  // namespace gateway
