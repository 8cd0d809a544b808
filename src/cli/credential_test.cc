// Tests of the requests that `cerco credential test` makes, and of what it answers to bad input.
#include <gtest/gtest.h>

#include <functional>

#include "cli/cli_test.h"
#include "cli/credential_test_request.h"

namespace {

using cli_test::Stage;
using policy::InjectKind;

policy::Credential credential(policy::Inject inject) {
  policy::Credential one;
  one.name = "api";
  one.hosts = {"api.test"};
  one.ports = {443};
  one.methods = {"POST", "GET"};
  one.paths = {"/v1/**"};
  one.env = {{"KEY", "secret"}};
  one.inject = std::move(inject);
  return one;
}

struct Row {
  policy::Inject inject;
  std::string url;
  std::vector<std::string> rest;  // of argv, behind `sh -c SCRIPT sh`
  std::string shown;
};

TEST(CredentialTest, PutsThePlaceholderIntoItsPlace) {
  const std::string url = "https://api.test/v1/";
  const Row rows[] = {
      {{.header = "authorization", .format = "Bearer {secret}"},
       "",
       {"authorization: Bearer ", "", url},
       url},
      {{.kind = InjectKind::basic, .user = "git"}, "", {"git:", "", url}, url},
      {{.kind = InjectKind::query, .field = "key"}, "", {url + "?key=", ""}, url + "?key=…"},
      {{.kind = InjectKind::query, .field = "key"},
       url + "?a=b",
       {url + "?a=b&key=", ""},
       url + "?a=b&key=…"},
      {{.kind = InjectKind::path, .format = "bot{secret}", .segment = 1},
       "https://api.test/x/getMe",
       {"https://api.test/bot", "/getMe"},
       "https://api.test/bot…/getMe"},
      {{.kind = InjectKind::path, .segment = 2},
       "",
       {"https://api.test/v1/", ""},
       "https://api.test/v1/…"},
      {{.kind = InjectKind::body, .field = "token"}, "", {"token=", "", url}, url},
  };
  for (const Row& row : rows) {
    const auto request = cli::test_request(credential(row.inject), "", row.url);
    ASSERT_TRUE(request) << row.shown;
    EXPECT_EQ(request->method, "GET");
    EXPECT_EQ(request->url, row.shown);
    ASSERT_GT(request->argv.size(), 4U);
    EXPECT_TRUE(request->argv[2].contains("\"$1${KEY}$2\"")) << request->argv[2];
    EXPECT_EQ((std::vector<std::string>(request->argv.begin() + 4, request->argv.end())), row.rest);
  }
  auto certificate = credential({.kind = InjectKind::mtls});
  certificate.require = false;
  certificate.env.clear();
  const auto request = cli::test_request(certificate, "HEAD", "");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->argv.back(), url);
  EXPECT_TRUE(request->argv[2].contains(" -I "));
}

TEST(CredentialTest, AsksForWhatTheBindingDoesNotSay) {
  const auto problem = [](const std::function<void(policy::Credential&)>& change) {
    auto one = credential({});
    change(one);
    const auto request = cli::test_request(one, "", "");
    return request ? "none" : request.error().line();
  };
  EXPECT_TRUE(problem([](auto& c) { c.hosts = {"*.api.test"}; }).contains("--url URL"));
  EXPECT_TRUE(problem([](auto& c) { c.paths = {"/*/x"}; }).contains("--url URL"));
  EXPECT_TRUE(problem([](auto& c) { c.methods = {"POST"}; }).contains("--method M"));
  EXPECT_TRUE(problem([](auto& c) { c.env.clear(); }).contains("env = "));
  EXPECT_EQ(problem([](auto&) {}), "none");
}

TEST(CredentialTest, BadInput) {
  Stage stage;
  EXPECT_EQ(stage.run({"credential", "test"}), 2);
  EXPECT_EQ(stage.run({"credential", "test", "none"}), 2);
  EXPECT_TRUE(stage.err().contains("no credential `none`")) << stage.err();
  EXPECT_EQ(stage.run({"credential", "show", "none"}), 3);
  EXPECT_EQ(stage.run({"credential", "revoke", "a"}), 2);
  EXPECT_EQ(stage.run({"credential", "revoke", "a", ""}), 2);
  EXPECT_EQ(stage.run({"credential", "revoke", "a", "b"}), 3);
  EXPECT_EQ(stage.run({"credential", "ls", "--json"}), 0);
  EXPECT_EQ(stage.out(), "[]\n");
}

}  // namespace
