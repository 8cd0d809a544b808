// What minted keys may do at most, derived from bindings; and the policies that ask for them.
#include <gtest/gtest.h>

#include "policy/policy.h"
#include "policy/testing.h"

namespace policy {
namespace {

Credential bound(std::vector<std::string> methods, std::vector<std::string> paths) {
  Credential credential;
  credential.name = "minted";
  credential.hosts = {"api.github.com"};
  credential.ports = {443};
  credential.methods = std::move(methods);
  credential.paths = std::move(paths);
  return credential;
}

using Permissions = std::map<std::string, std::string>;

TEST(Narrow, GithubPermissionsByMethodsAndPaths) {
  struct Row {
    std::vector<std::string> methods;
    std::vector<std::string> paths;
    std::vector<std::string> repositories;
    Permissions permissions;  // empty: refused
  };
  const Row rows[] = {
      {{"GET"}, {"/repos/acme/app/issues/**"}, {"app"}, {{"issues", "read"}}},
      {{"GET", "POST"}, {"/repos/acme/app/issues"}, {"app"}, {{"issues", "write"}}},
      {{"GET"},
       {"/repos/acme/app/contents/**", "/repos/acme/lib/pulls"},
       {"app", "lib"},
       {{"contents", "read"}, {"pull_requests", "read"}}},
      {{"GET"}, {"/repos/acme/app"}, {"app"}, {{"metadata", "read"}}},
      {{"PATCH"}, {"/repos/acme/app"}, {}, {}},
      {{"GET"}, {"/repos/acme/app/**"}, {}, {}},
      {{"GET"}, {"/repos/acme/*/issues"}, {}, {}},
      {{"GET"}, {"/repos/**"}, {}, {}},
      {{"GET"}, {"/**"}, {}, {}},
      {{"GET"}, {"/user"}, {}, {}},
      {{"GET"}, {"/repos/acme/app/hooks"}, {}, {}},
      {{"GET"}, {"/repos/acme/app/issues", "/repos/other/app/issues"}, {}, {}},
      {{"GET", "POST"},
       {"/acme/app.git/info/refs", "/acme/app.git/git-upload-pack"},
       {"app"},
       {{"contents", "read"}}},
      {{"GET", "POST"}, {"/acme/app.git/**"}, {"app"}, {{"contents", "write"}}},
  };
  for (const Row& row : rows) {
    const auto grant = github_grant(bound(row.methods, row.paths));
    ASSERT_EQ(grant.has_value(), !row.permissions.empty()) << row.paths[0];
    if (!grant) continue;
    EXPECT_EQ(grant->owner, "acme");
    EXPECT_EQ(grant->repositories, row.repositories) << row.paths[0];
    EXPECT_EQ(grant->permissions, row.permissions) << row.paths[0];
  }
}

TEST(Narrow, GithubPermissionsAsWritten) {
  Credential credential = bound({"GET"}, {"/repos/acme/app/**"});
  credential.source.mint.permissions = {{"contents", "read"}};
  const auto grant = github_grant(credential);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->permissions, credential.source.mint.permissions);
  EXPECT_EQ(grant->repositories, std::vector<std::string>{"app"});
}

Credential aws(std::string host, std::vector<std::string> methods, std::vector<std::string> paths) {
  Credential credential = bound(std::move(methods), std::move(paths));
  credential.hosts = {std::move(host)};
  credential.inject.kind = InjectKind::sigv4;
  credential.inject.service = "s3";
  return credential;
}

TEST(Narrow, SessionPolicyOfAws) {
  const auto path_style =
      aws_session_policy(aws("s3.eu-central-1.amazonaws.com", {"GET"}, {"/data/**"}));
  ASSERT_TRUE(path_style);
  EXPECT_EQ(*path_style,
            R"({"Version":"2012-10-17","Statement":[)"
            R"({"Effect":"Allow","Action":["s3:GetObject"],"Resource":["arn:aws:s3:::data/*"]},)"
            R"({"Effect":"Allow","Action":["s3:ListBucket","s3:GetBucketLocation"],)"
            R"("Resource":["arn:aws:s3:::data"]}]})");
  const auto hosted = aws_session_policy(
      aws("data.s3.eu-central-1.amazonaws.com", {"PUT", "DELETE"}, {"/in/**", "/one"}));
  ASSERT_TRUE(hosted);
  EXPECT_EQ(*hosted,
            R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:PutObject",)"
            R"("s3:ListMultipartUploadParts","s3:AbortMultipartUpload","s3:DeleteObject"],)"
            R"("Resource":["arn:aws:s3:::data/in/*","arn:aws:s3:::data/one"]}]})");
  for (const char* path : {"/**", "/*/x", "/da%20ta/**", "/"}) {
    EXPECT_FALSE(aws_session_policy(aws("s3.amazonaws.com", {"GET"}, {path}))) << path;
  }
  auto other = aws("dynamodb.eu-central-1.amazonaws.com", {"POST"}, {"/"});
  other.inject.service = "dynamodb";
  EXPECT_TRUE(aws_session_policy(other)->contains(R"("Action":["dynamodb:*"])"));
  std::vector<std::string> many(80, "/bucket/a-long-prefix-of-a-key/**");
  EXPECT_FALSE(aws_session_policy(aws("s3.amazonaws.com", {"GET"}, many)));
  other.inject.kind = InjectKind::header;
  EXPECT_FALSE(aws_session_policy(other));
}

TEST(Narrow, AccessBoundaryOfGoogle) {
  Credential credential =
      bound({"GET"}, {"/storage/v1/b/data/o/**", "/download/storage/v1/b/data/o/*"});
  credential.hosts = {"storage.googleapis.com"};
  EXPECT_EQ(*gcp_boundary(credential),
            R"({"accessBoundary":{"accessBoundaryRules":[{"availableResource":)"
            R"("//storage.googleapis.com/projects/_/buckets/data",)"
            R"("availablePermissions":["inRole:roles/storage.objectViewer"]}]}})");
  credential.methods = {"GET", "PUT"};
  credential.paths = {"/data/x"};
  EXPECT_TRUE(gcp_boundary(credential)->contains("inRole:roles/storage.objectAdmin"));
  for (const char* path : {"/**", "/storage/v1/b", "/storage/v1/b/*/o", "/storage/v1/projects/x"}) {
    credential.paths = {path};
    EXPECT_FALSE(gcp_boundary(credential)) << path;
  }
  credential.hosts = {"logging.googleapis.com"};
  EXPECT_FALSE(gcp_boundary(credential));
  credential.source.mint.scope = "https://www.googleapis.com/auth/logging.write";
  EXPECT_EQ(*gcp_boundary(credential), "");
}

TEST(Narrow, EndpointsOfMints) {
  const auto plain = endpoint_of("https://Auth.Example.com");
  ASSERT_TRUE(plain);
  EXPECT_EQ(*plain, (Endpoint{"auth.example.com", 443, "/"}));
  EXPECT_EQ(*endpoint_of("https://a.example.com:8443/x/y"),
            (Endpoint{"a.example.com", 8443, "/x/y"}));
  for (const char* url :
       {"", "http://a.example.com/", "https://", "https:///x", "https://a.example.com:/",
        "https://a.example.com:65536/", "https://u:p@a.example.com/", "https://127.0.0.1/",
        "https://[::1]/", "https://localhost/", "https://a.example.com/../x",
        "https://a.example.com/x#y"}) {
    EXPECT_FALSE(endpoint_of(url)) << url;
  }
}

// The whole way: parsed, narrowed at load, shown and parsed again.
constexpr std::string_view kRules = R"(
version = 1
[[egress]]
host = "api.github.com"
methods = ["GET", "POST"]
paths = ["/**"]
[[egress]]
host = "*.s3.eu-central-1.amazonaws.com"
methods = ["GET", "PUT"]
paths = ["/**"]
[[egress]]
host = "storage.googleapis.com"
methods = ["GET"]
paths = ["/**"]
)";
constexpr std::string_view kGithub = R"(
[[credential]]
source = { github_app = { app_id = "7", installation = "8", permissions = { issues = "read" }, secret = { file = "/k.pem" } } }
hosts = ["api.github.com"]
methods = ["GET"]
paths = ["/repos/acme/app/issues/**"]
inject = { header = "Authorization", format = "Bearer {secret}" }
env = { GH_TOKEN = "secret" }
)";
constexpr std::string_view kAws = R"(
[[credential]]
source = { aws_sts = { role = "arn:aws:iam::123456789012:role/r", region = "eu-central-1", secret = { command = ["keys"] } } }
hosts = ["data.s3.eu-central-1.amazonaws.com"]
methods = ["GET", "PUT"]
paths = ["/**"]
inject = { sigv4 = { region = "eu-central-1", service = "s3" } }
env = { AWS_ACCESS_KEY_ID = "access_key_id", AWS_SECRET_ACCESS_KEY = "secret_access_key", AWS_SESSION_TOKEN = "session_token" }
)";
constexpr std::string_view kGoogle = R"(
[[credential]]
source = { gcp = { secret = { systemd = "account" } } }
hosts = ["storage.googleapis.com"]
methods = ["GET"]
paths = ["/storage/v1/b/data/o/**"]
inject = { header = "Authorization", format = "Bearer {secret}" }
env = { TOKEN = "secret" }
)";

TEST(Narrow, PoliciesSaySo) {
  std::string text = std::string(kRules);
  for (const std::string_view part : {kGithub, kAws, kGoogle}) text += part;
  const auto effective = testing::read(text);
  ASSERT_TRUE(effective) << effective.error().line();
  const auto again = testing::read(show(*effective));
  ASSERT_TRUE(again) << again.error().line();
  EXPECT_EQ(again->policy, effective->policy);
  EXPECT_EQ(mint_rules(effective->policy).size(), 4U);
  const auto replaced = [&](std::string_view part, std::string_view old, std::string_view now) {
    std::string changed(part);
    const auto at = changed.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    changed.replace(at, old.size(), now);
    return testing::line_of(testing::read(std::string(kRules) + changed));
  };
  EXPECT_TRUE(
      replaced(kGithub, "/repos/acme/app/issues/**", "/**").contains("wider than the minted"));
  EXPECT_TRUE(replaced(kGithub, "issues = \"read\"", "issues = \"admin\"")
                  .contains("\"read\" or \"write\""));
  EXPECT_TRUE(
      replaced(kAws, "sigv4 = { region = \"eu-central-1\", service = \"s3\" }", "header = \"A\"")
          .contains("access_key_id"));
  EXPECT_TRUE(replaced(kAws, "= \"session_token\"", "= \"secret\"").contains("\"session_token\""));
  EXPECT_TRUE(replaced(kAws, "\nhosts", "\nrequire = false\nhosts").contains("require = true"));
  EXPECT_TRUE(replaced(kGoogle, "/b/data/", "/b/*/").contains("name one bucket"));
}

}  // namespace
}  // namespace policy
