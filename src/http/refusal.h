// What a client inside is told when a request is refused: a status, one header and a JSON body.
#pragma once

#include <cstdint>
#include <string>

#include "http/field.h"

namespace http {

struct Refusal {
  std::string reason;  // X-Cerco-Deny as well
  std::string rule;
  std::string host;
  std::uint16_t port = 0;
  std::string method;
  std::string path;
  std::string fix;  // TOML; null in the JSON when empty
};

enum class After { keep, close };  // what becomes of the connection

// The JSON object {reason, rule, host, port, method, path, fix}.
[[nodiscard]] std::string refusal_body(const Refusal& refusal);
// A whole response. `status` is 403 but where the protocol has a better one (421, 502, 503). A HEAD
// request (by refusal.method) gets the head only.
[[nodiscard]] std::string refusal_response(unsigned status, const Refusal& refusal, After after);
// Answers a CONNECT whose tunnel is open.
[[nodiscard]] std::string tunnel_response();
// A whole response that closes, for bytes that are not a request: {reason, text}.
[[nodiscard]] std::string rejection_response(const Rejection& rejection);
[[nodiscard]] std::string_view status_phrase(unsigned status);  // "Forbidden"; "" when unknown

}  // namespace http
