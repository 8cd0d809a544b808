// Requests of AWS: what the agent signed under its placeholder is signed again under the real key.
#pragma once

#include <string>
#include <string_view>

#include "http/http.h"
#include "plan/plan.h"

namespace gateway {

// What a request says of its body in x-amz-content-sha256.
enum class Payload {
  said,       // its hash, or that it is not signed
  to_hash,    // nothing: the body has to be read
  streaming,  // each piece is signed on its own
  unknown,
};
[[nodiscard]] Payload payload_of(const http::RequestHead& head);

// Puts x-amz-date, x-amz-security-token and Authorization into the head, for the time `now`
// (seconds since 1970). Signed are Host, Content-Type, Content-MD5, every x-amz- field, and every
// other x- field that the agent signed. `body` counts where payload_of() is to_hash. `lease` has
// the signing key of sigv4_date(now).
void sign(http::RequestHead& head, std::string_view body, const policy::Inject& inject,
          const plan::LeaseAnswer& lease, std::int64_t now);
[[nodiscard]] std::string sigv4_date(std::int64_t now);
// Whether a request asks a service of AWS for keys (N174): by its X-Amz-Target, its Action in the
// query, CreateSession of S3, or the path of CodeArtifact. In a body it stands too seldom: services
// that take it there are none that a policy may name.
[[nodiscard]] bool asks_for_keys(const http::RequestHead& head);

}  // namespace gateway
