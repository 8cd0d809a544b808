// Signals as something to read.
#pragma once

#include <optional>
#include <span>

#include "base/base.h"

namespace os {

// Blocks the signals and gives a signalfd(2) of them, not blocking. Those that this process was
// started to ignore (`nohup`, a shell's background jobs) stay ignored and are left out.
[[nodiscard]] base::Result<base::Fd> signal_descriptor(std::span<const int> numbers);
// The next signal that came, nullopt when there is none.
[[nodiscard]] base::Result<std::optional<int>> next_signal(int descriptor);
// A write to a pipe or socket that nobody reads is an error, not a signal.
void ignore_sigpipe();

}  // namespace os
