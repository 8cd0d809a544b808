// A copy of this process that goes its own way.
#pragma once

#include <functional>
#include <span>

#include "base/base.h"
#include "os/process.h"

namespace os {

// fork(2). The copy leads a session of its own (a terminal's signals do not reach it), has every
// signal at its default and none blocked, 0 and 1 are /dev/null, and of the others it keeps 2 and
// `keep`. It ends with what `act` returns; nothing of the caller's is unwound in it. It does not
// end with this process.
[[nodiscard]] base::Result<Child> fork_child(std::span<const int> keep,
                                             const std::function<int()>& act);

// 0, 1 and 2 become /dev/null, so that whoever reads what they stood for sees its end. Where that
// fails they stay.
void let_go_of_streams();

}  // namespace os
