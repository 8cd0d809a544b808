// The narrowest [[egress]] that would allow what was refused, as TOML.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace policy {

// For a connection, and for a request when method and path are known.
[[nodiscard]] std::string fix_host(const Request& request);
// For raw bytes, and for addresses: a tcp rule.
[[nodiscard]] std::string fix_raw(const Request& request);
// For one request on a host and port that are allowed already.
[[nodiscard]] std::string fix_request(const Request& request,
                                      const std::vector<std::string>& methods);

}  // namespace policy
