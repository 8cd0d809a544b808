// Where the secrets of the policy's credentials are read: with the caller's rights, into sealed
// memory.
#pragma once

#include <vector>

#include "base/base.h"
#include "cli/cli.h"

namespace cli {

// One sealed memfd a credential, in the policy's order, and behind them one with the password of
// network.upstream_proxy where it has one. `env`: the variable must be set. `file`: a
// regular file of the caller's own or root's, closed to group and others. `systemd`: such a file of
// that name in $CREDENTIALS_DIRECTORY.
// `command`: run as the caller with the caller's environment, for at most half a minute; it must
// end with 0. At most 64 KiB each; one line end at the end is cut off; empty ones are errors. No
// secret is in any message. An error, too: a variable that is let in (environment.set or pass)
// holds a secret.
[[nodiscard]] base::Result<std::vector<base::Fd>> open_secrets(const World& world,
                                                               const policy::Policy& policy);

// One other secret of the caller's, held to the same rules; `name` is for messages.
[[nodiscard]] base::Result<base::Fd> open_secret(const World& world, const policy::Policy& policy,
                                                 const std::string& name,
                                                 const policy::Source& source);

}  // namespace cli
