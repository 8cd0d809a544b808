// Who may use a proxy that stands alone: whoever shows its token.
#pragma once

#include <string_view>
#include <vector>

#include "gateway/core.h"
#include "http/http.h"

namespace gateway {

// True also where no token is wanted: inside a sandbox the socket says whose it is.
[[nodiscard]] bool is_token(const Core& core, std::string_view password);
// The same of a request's Proxy-Authorization among the fields that it does not send on: Basic with
// the token as the password, whatever the user, or Bearer.
[[nodiscard]] bool shows_token(const Core& core, const std::vector<http::Field>& dropped);

}  // namespace gateway
