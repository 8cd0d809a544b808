// Which words of cerco-init are taken: below a kernel of its own it may speak for the code inside.
#pragma once

#include "base/frame.h"

namespace supervisor {

// Whether a command can have ended so: an exit status or the number of a signal as the kernel has
// them, and a time that a journal can hold.
[[nodiscard]] bool can_be(const frame::Ended& ended);
// Whether the step is a word and the error a number of errno.
[[nodiscard]] bool can_be(const frame::NotStarted& failed);

}  // namespace supervisor
