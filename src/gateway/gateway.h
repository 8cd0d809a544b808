// The gateway: the only process of a sandbox with an end outside. It answers the sandbox's DNS,
// decides about each connection and request, and carries out what the policy allows.
#pragma once

namespace gateway {

// Runs the process on the descriptors of plan.h (kFdPlan …), until the supervisor says so or is
// gone. Confines itself before it says that it is ready. Returns the exit status.
int serve();

// The process of cerco-minter: asks token endpoints what the broker wants asked, until the broker's
// end. Returns the exit status.
int serve_minter();

}  // namespace gateway
