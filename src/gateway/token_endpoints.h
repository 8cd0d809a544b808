// Places of well-known services whose answers hold new keys: whoever may call one with a credential
// has a key that no binding covers.
#pragma once

#include <string_view>

#include "policy/policy.h"

namespace gateway {

// Whether the path (canonical, without the query) is such a place.
[[nodiscard]] bool hands_out_keys(std::string_view path);

// Whether a binding names the path itself: one of its patterns has the same last segment, written
// out.
[[nodiscard]] bool names_path(const policy::Credential& credential, std::string_view path);

}  // namespace gateway
