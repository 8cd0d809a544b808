// Command lines as the journal keeps them: F105.
#include <gtest/gtest.h>

#include "policy/policy.h"

namespace {

using Words = std::vector<std::string>;

constexpr const char* kToken = "ghp_0123456789abcdefghijABCDEFGHIJ456789";

TEST(Redaction, WhatLooksLikeACredentialGoes) {
  const std::string token = kToken;
  const std::pair<Words, Words> cases[] = {
      {{"curl", "-H", "Authorization: Bearer " + token},
       {"curl", "-H", "Authorization: Bearer [redacted]"}},
      {{"sh", "-c", "TOKEN=" + token + " ./deploy"}, {"sh", "-c", "TOKEN=[redacted]"}},
      {{"sh", "-c", "cd x; PASSWORD=hunter2 ./deploy; A_TOKEN=b"},
       {"sh", "-c", "cd x; PASSWORD=[redacted] ./deploy; A_TOKEN=[redacted]"}},
      {{"tool", "--password", "hunter2", "x"}, {"tool", "--password", "[redacted]", "x"}},
      {{"tool", "--password=hunter2"}, {"tool", "--password=[redacted]"}},
      {{"env", "DB_PASSWORD=hunter2"}, {"env", "DB_PASSWORD=[redacted]"}},
      {{"tool", "--api-key", "aB3dE6gH9jK2mN5pQ8sT1v"}, {"tool", "--api-key", "[redacted]"}},
      {{"git", "clone", "https://me:" + token + "@host.test/a"},
       {"git", "clone", "https://me:[redacted]@host.test/a"}},
      {{"psql", "postgres://me:pw@db/x?a=b", "ftp://a:b@c"},
       {"psql", "postgres://me:[redacted]@db/x?a=b", "ftp://a:[redacted]@c"}},
      {{"x", "-----BEGIN RSA PRIVATE KEY-----\nabc"}, {"x", "[redacted]"}},
      {{"x", token + "," + token}, {"x", "[redacted],[redacted]"}},
  };
  for (const auto& [given, kept] : cases) EXPECT_EQ(policy::without_credentials(given), kept);
}

TEST(Redaction, TheRestStays) {
  for (const Words& words :
       {Words{"python3", "-c", "print(1)"}, Words{"openssl", "--key", "/etc/ssl/server.pem"},
        Words{"pip", "install", "sk-learn", "--token"}, Words{"--password", ""},
        Words{"curl", "https://host.test:8443/a@b?c=d"}, Words{"a=b", "x==y", "=", "://", "://@"},
        Words{""}, Words{}}) {
    EXPECT_EQ(policy::without_credentials(words), words);
  }
}

}  // namespace
