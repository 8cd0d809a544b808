// Which places hand out keys, and which bindings name them.
#include "gateway/token_endpoints.h"

#include <gtest/gtest.h>

namespace gateway {
namespace {

TEST(TokenEndpoints, N175N176Table) {
  for (const char* path :
       {"/oauth/token", "/api/oauth2/v2.0/token", "/login/oauth/access_token", "/OAuth/Token/",
        "/realms/a/protocol/openid-connect/token", "/app/installations/12/access_tokens",
        "/user/keys", "/api/v4/users/1/personal_access_tokens", "/api/v4/projects/7/access_tokens",
        "/v1/projects/-/serviceAccounts/a@b.iam:generateAccessToken", "/v1/sys/wrapping/unwrap",
        "/v1/auth/token/create", "/v1/auth/userpass/login",
        "/api/v1/namespaces/x/serviceaccounts/y/token", "/-/npm/v1/tokens"}) {
    EXPECT_TRUE(hands_out_keys(path)) << path;
  }
  for (const char* path : {"/", "/v1/messages", "/v1/messages/count_tokens", "/token",
                           "/repos/a/b/contents/oauth/token.md", "/oauth/token/info", "/user",
                           "/v1/projects/-/serviceAccounts/a", "/v1/kv/data/x", "/access_tokens"}) {
    EXPECT_FALSE(hands_out_keys(path)) << path;
  }
}

TEST(TokenEndpoints, ABindingNamesItByItsLastSegment) {
  policy::Credential credential;
  const auto names = [&](std::vector<std::string> paths, const char* path) {
    credential.paths = std::move(paths);
    return names_path(credential, path);
  };
  EXPECT_TRUE(names({"/x", "/oauth/token"}, "/oauth/token"));
  EXPECT_TRUE(names({"/app/installations/*/access_tokens"}, "/app/installations/1/access_tokens"));
  EXPECT_FALSE(names({"/**"}, "/oauth/token"));
  EXPECT_FALSE(names({"/oauth/*"}, "/oauth/token"));
  EXPECT_FALSE(names({"/oauth/**"}, "/oauth/token"));
  EXPECT_FALSE(names({"/"}, "/oauth/token"));
}

}  // namespace
}  // namespace gateway
