// AWS Signature Version 4: what a client claims in its Authorization, and the signature of a
// request under other keys (AWS, "Signature Version 4 signing process").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace http {

// The keys of an account, from what a source gave: a JSON object with AccessKeyId, SecretAccessKey
// and perhaps SessionToken (as credential_process has it), or ID:SECRET or ID:SECRET:TOKEN. nullopt
// for anything else. Wipe what it holds.
struct SigV4Keys {
  std::string id;
  std::string secret;
  std::string token;
};
[[nodiscard]] std::optional<SigV4Keys> sigv4_keys(std::string_view text);

struct SigV4Scope {
  std::string date;  // YYYYMMDD
  std::string region;
  std::string service;
  bool operator==(const SigV4Scope&) const = default;
};
// The key that signs in one scope: with it nothing can be signed on another day, in another region
// or for another service. 32 bytes: wipe them.
[[nodiscard]] std::string sigv4_key(std::string_view secret, const SigV4Scope& scope);

// `AWS4-HMAC-SHA256 Credential=ID/DATE/REGION/SERVICE/aws4_request, SignedHeaders=a;b,
// Signature=HEX`; nullopt for anything else.
struct SigV4Claim {
  std::string id;
  SigV4Scope scope;
  std::vector<std::string> headers;
  std::string signature;
};
[[nodiscard]] std::optional<SigV4Claim> sigv4_claim(std::string_view authorization);

// What is signed. `headers` are lower-case names, each once, with the values that are sent; all of
// them are signed.
struct SigV4Request {
  std::string method;
  std::string target;  // as sent, with its query
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload_hash;  // of x-amz-content-sha256, or the hexadecimal SHA-256 of the body
  std::string time;          // 20150830T123600Z
  SigV4Scope scope;
};
[[nodiscard]] std::string sigv4_signature(const SigV4Request& request, std::string_view key);
// The value of Authorization, with that key's id.
[[nodiscard]] std::string sigv4_authorization(const SigV4Request& request, std::string_view id,
                                              std::string_view key);
// The `20150830T123600Z` of a second since 1970.
[[nodiscard]] std::string sigv4_time(std::int64_t seconds);

}  // namespace http
