// The authorities that upstream certificates are judged by.
#pragma once

#include "base/base.h"
#include "plan/plan.h"

namespace cli {

// As a memfd: the caller's, else the host's, and network.ca. Empty where no TLS is ended or begun.
[[nodiscard]] base::Result<base::Fd> open_roots(const plan::HostFacts& host,
                                                const plan::Plan& plan);

}  // namespace cli
