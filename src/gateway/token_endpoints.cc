// The table, and how it is compared. Sources: the services' API references (OAuth 2.0 RFC 6749,
// GitHub and GitLab REST, IAM Credentials of Google Cloud, Vault HTTP API, Kubernetes TokenRequest,
// npm registry).
#include "gateway/token_endpoints.h"

#include <algorithm>
#include <vector>

#include "base/base.h"

namespace gateway {
namespace {

// The end of a path; * is one segment, a segment that begins with ":" the end of one.
constexpr std::string_view kEnds[] = {
    "oauth/token",
    "oauth/access_token",
    "oauth2/token",
    "oauth2/*/token",
    "o/token",
    "connect/token",
    "protocol/openid-connect/token",
    "app/installations/*/access_tokens",
    "app-manifests/*/conversions",
    "user/keys",
    "user/gpg_keys",
    "actions/runners/registration-token",
    "actions/runners/remove-token",
    "personal_access_tokens",
    "impersonation_tokens",
    "*/access_tokens",
    "deploy_tokens",
    "deploy_keys",
    "serviceAccounts/:generateAccessToken",
    "serviceAccounts/:generateIdToken",
    "serviceAccounts/:signJwt",
    "serviceAccounts/:signBlob",
    "serviceAccounts/*/keys",
    "serviceaccounts/*/token",
    "sys/wrapping/unwrap",
    "auth/token/create",
    "auth/*/login",
    "-/npm/v1/tokens",
};

std::vector<std::string_view> segments_of(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.starts_with('/')) path.remove_prefix(1);
  return base::split(path, '/');
}

bool same(std::string_view segment, std::string_view wanted) {
  if (wanted == "*") return !segment.empty();
  if (wanted.starts_with(':')) return base::to_lower(segment).ends_with(base::to_lower(wanted));
  return base::to_lower(segment) == base::to_lower(wanted);
}

bool ends_with(const std::vector<std::string_view>& path,
               const std::vector<std::string_view>& end) {
  return path.size() >= end.size() &&
         std::ranges::equal(end,
                            std::ranges::subrange(
                                path.end() - static_cast<std::ptrdiff_t>(end.size()), path.end()),
                            [](auto wanted, auto segment) { return same(segment, wanted); });
}

}  // namespace

bool hands_out_keys(std::string_view path) {
  const auto segments = segments_of(path);
  return std::ranges::any_of(
      kEnds, [&](std::string_view end) { return ends_with(segments, segments_of(end)); });
}

bool names_path(const policy::Credential& credential, std::string_view path) {
  const std::string_view last = segments_of(path).back();
  return std::ranges::any_of(credential.paths, [&](const std::string& pattern) {
    const std::string_view named = segments_of(pattern).back();
    return !named.contains('*') && named == last;
  });
}

}  // namespace gateway
