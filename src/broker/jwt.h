// Signed assertions (RFC 7515, RFC 7519): the only thing that a private key of ours is used for.
#pragma once

#include <string>
#include <string_view>

#include "base/base.h"
#include "policy/policy.h"

namespace broker {

// RFC 4648 section 5, without padding.
[[nodiscard]] std::string base64url(std::string_view bytes);
// A JWT with these claims (a JSON object). `pem` is a private key without a password, RSA of 2048
// bits or more for RS256, on P-256 for ES256. bad_input where it is not; nothing of the key is in
// the message.
[[nodiscard]] base::Result<std::string> sign_jwt(policy::JwtAlgorithm algorithm,
                                                 std::string_view pem, std::string_view key_id,
                                                 std::string_view claims);

}  // namespace broker
