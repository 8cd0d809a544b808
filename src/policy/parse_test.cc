// The parser: every key, every error, every change from the command line.
#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/testing.h"

namespace policy {
namespace {

using testing::line_of;
using testing::policy_with;
using testing::read;
using testing::starts_with_place;

// --- Parsing --------------------------------------------------------------------------------

TEST(Parsing, EveryKeyWithAGoodAndABadValue) {
  const auto rows = cases::rows("policy_keys.txt");
  for (const auto& row : rows) {
    ASSERT_GE(row.size(), 3U) << row[0];
    if (!row[1].empty()) {
      const auto good = read(policy_with(row[0], row[1]));
      EXPECT_TRUE(good) << row[0] << " = " << row[1] << ": " << line_of(good);
    }
    const auto bad = read(policy_with(row[0], row[2]));
    ASSERT_FALSE(bad) << row[0] << " = " << row[2];
    EXPECT_EQ(bad.error().kind, base::Kind::bad_input) << row[0] << ": " << bad.error().line();
    EXPECT_TRUE(starts_with_place(bad.error().line())) << bad.error().line();
    EXPECT_FALSE(bad.error().expected.empty()) << bad.error().line();
    if (row.size() < 4) continue;
    const auto later = read(policy_with(row[0], row[3]));
    ASSERT_FALSE(later) << row[0] << " = " << row[3];
    EXPECT_EQ(later.error().kind, base::Kind::unsupported)
        << row[0] << ": " << later.error().line();
    EXPECT_TRUE(later.error().line().ends_with(": not carried out yet")) << later.error().line();
    EXPECT_TRUE(later.error().line().contains(row[0].substr(row[0].find('.') + 1)))
        << later.error().line();
  }
}

TEST(Parsing, TheTableOfKeysIsWhole) {
  std::set<std::string> listed;
  for (const auto& row : cases::rows("policy_keys.txt")) listed.insert(row[0]);
  const auto effective = read(cases::read("decide.toml"));
  ASSERT_TRUE(effective);
  std::size_t keys = 0;
  for (const auto& [path, origin] : effective->origins) {
    std::string key = path;
    for (auto at = key.find('['); at != std::string::npos; at = key.find('['))
      key.erase(at, key.find(']') - at + 1);
    const auto parts = base::split(key, '.');
    if (parts.size() != 2) continue;
    ++keys;
    EXPECT_TRUE(listed.contains(key)) << key;
  }
  EXPECT_GT(keys, 60U);
}

TEST(Parsing, Errors_F25_F100_F55_N182) {
  const std::string all = cases::read("policy_errors.txt");
  std::size_t count = 0;
  for (std::size_t at = all.find("### "); at != std::string::npos; ++count) {
    const auto next = all.find("\n### ", at);
    const std::string block = all.substr(at, next == std::string::npos ? next : next + 1 - at);
    at = next == std::string::npos ? next : next + 1;
    const auto text_at = block.find('\n') + 1;
    const auto arrow = block.find("\n=> ");
    ASSERT_NE(arrow, std::string::npos) << block;
    const std::string expected = block.substr(arrow + 4, block.find('\n', arrow + 1) - arrow - 4);
    const auto result = read(block.substr(text_at, arrow + 1 - text_at));
    ASSERT_FALSE(result) << block;
    EXPECT_TRUE(result.error().line().starts_with("policy:" + expected))
        << block << "\nsaid: " << result.error().line();
    EXPECT_FALSE(result.error().line().contains('\n'));
  }
  EXPECT_EQ(count, 42U);
}

TEST(Parsing, SecretsAreNeverInAMessage_F55_F105) {
  const std::string secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const Override flags[] = {{OverrideKind::env, "GH=" + secret}};
  EXPECT_FALSE(line_of(read("", flags)).contains(secret));
  EXPECT_FALSE(line_of(read("[environment]\nset = { A = \"" + secret + "\" }\n")).contains(secret));
  const Override set[] = {{OverrideKind::set, "environment.set.A=" + secret}};
  EXPECT_FALSE(line_of(read("", set)).contains(secret));
}

TEST(Parsing, PlainLetsAValueIn) {
  EXPECT_TRUE(read(
      "[environment]\nset = { MY_TOKEN = \"q7Zk2Lw9xP4vT8sB1nYd\" }\nplain = [\"MY_TOKEN\"]\n"));
  EXPECT_FALSE(
      read("[environment]\nset = { MY_TOKEN = \"q7Zk2Lw9xP4vT8sB1nYd\" }\nplain = [\"OTHER\"]\n"));
}

TEST(Parsing, WhatLooksLikeACredential_F55) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"A", "sk-proj-0123456789abcdef"},
           {"A", "AKIAIOSFODNN7EXAMPLE"},
           {"A", "glpat-0123456789abcdefghij"},
           {"A", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"},
           {"A", "-----BEGIN RSA PRIVATE KEY-----\nMII"},
           {"DB_PASSWORD", "Xk29vLq81zPwR74mTn0c"},
           {"api_key", "0123456789abcdef0123"}}) {
    EXPECT_NE(credential_like(name, value), "") << name << "=" << value;
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"A", "sk-learn"},
           {"A", "0123456789abcdef0123456789abcdef"},
           {"MY_KEY", "short"},
           {"MY_KEY", "aaaaaaaaaaaaaaaaaaaaaaaa1"},
           {"MY_KEY", "a sentence of more than twenty characters 1"},
           {"PASSWORD_FILE", "/run/secrets/db_password_1"},
           {"A", ""}}) {
    EXPECT_EQ(credential_like(name, value), "") << name << "=" << value;
  }
}

TEST(Parsing, DefaultsAreTheContractsAndCutToTheHost) {
  const auto effective = parse("", "policy", {}, {1000, 1ULL << 30});
  ASSERT_TRUE(effective);
  const Policy& policy = effective->policy;
  EXPECT_EQ(policy.limits.cpus_milli, 1000U);
  EXPECT_EQ(policy.limits.memory, 512ULL << 20);
  EXPECT_EQ(policy, defaults({1000, 1ULL << 30}));
  EXPECT_EQ(defaults({64000, 1ULL << 40}).limits.cpus_milli, 2000U);
  EXPECT_EQ(defaults({64000, 1ULL << 40}).limits.memory, 2ULL << 30);
  EXPECT_EQ(policy.filesystem.hide.size(), 8U);
  EXPECT_EQ(policy.code, Code::unreviewed);
  EXPECT_EQ(policy.limits.wall_ms, 3600'000U);
  EXPECT_EQ(effective->origins.at("limits.wall"), "default");
  // What is written may be more than the host's half.
  const auto asked = parse("[limits]\nmemory = \"900MiB\"\n", "policy", {}, {1000, 1ULL << 30});
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->policy.limits.memory, 900ULL << 20);
  EXPECT_EQ(asked->origins.at("limits.memory"), "policy:2:10");
}

TEST(Parsing, Overrides) {
  for (const auto& row : cases::rows("overrides.txt")) {
    ASSERT_EQ(row.size(), 2U);
    const auto space = row[0].find(' ');
    const std::string flag = row[0].substr(0, space);
    const Override change = {
        flag == "set"     ? OverrideKind::set
        : flag == "allow" ? OverrideKind::allow
        : flag == "env"   ? OverrideKind::env
                          : OverrideKind::timeout,
        space == std::string::npos ? "" : cases::unescape(row[0].substr(space + 1))};
    const auto result = read("", {&change, 1});
    if (row[1].starts_with("! ")) {
      ASSERT_FALSE(result) << row[0];
      EXPECT_TRUE(result.error().line().contains(row[1].substr(2)))
          << row[0] << ": " << result.error().line();
      continue;
    }
    ASSERT_TRUE(result) << row[0] << ": " << line_of(result);
    for (std::string_view line : base::split(row[1], ';')) {
      EXPECT_TRUE(show(*result).contains("\n" + cases::trim(line)))
          << row[0] << ": " << line << "\n"
          << show(*result);
    }
  }
}

TEST(Parsing, LaterChangesWinAndAddUp) {
  const Override changes[] = {{OverrideKind::set, "limits.wall=5m"},
                              {OverrideKind::timeout, "2s"},
                              {OverrideKind::env, "A=1"},
                              {OverrideKind::env, "A=2"},
                              {OverrideKind::env, "B"},
                              {OverrideKind::env, "B=3"},
                              {OverrideKind::env, "A"},
                              {OverrideKind::allow, "a.example.com"},
                              {OverrideKind::allow, "a.example.com:80"},
                              {OverrideKind::set, "egress[1].name=plain"}};
  const auto result =
      read("[[egress]]\nhost = \"x.example.com\"\n[environment]\npass = [\"C\"]\n", changes);
  ASSERT_TRUE(result) << line_of(result);
  EXPECT_EQ(result->policy.limits.wall_ms, 2000U);
  EXPECT_EQ(result->policy.environment.set, (std::map<std::string, std::string>{{"B", "3"}}));
  EXPECT_EQ(result->policy.environment.pass, (std::vector<std::string>{"C", "A"}));
  ASSERT_EQ(result->policy.egress.size(), 3U);
  EXPECT_EQ(result->policy.egress[1].name, "plain");
  EXPECT_EQ(result->policy.egress[2].ports, std::vector<std::uint16_t>{80});
  EXPECT_EQ(result->origins.at("egress[2].host"), "--allow a.example.com:80");
}

TEST(Parsing, AllowConflictsWithAnInspectingRule) {
  const Override allow[] = {{OverrideKind::allow, "api.example.com"}};
  const auto result = read("[[egress]]\nhost = \"api.example.com\"\nmethods = [\"GET\"]\n", allow);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().line().starts_with(
      "--allow api.example.com: egress[1]: for api.example.com:443 rule \"egress-1\" looks inside"))
      << result.error().line();
}

TEST(Parsing, WarningsOfHostingSuffixes_N49) {
  for (std::string_view host :
       {"*.github.io", "*.r2.dev", "*.workers.dev", "*.trycloudflare.com", "*.ngrok.app",
        "*.amazonaws.com", "**.blob.core.windows.net", "*.s3.amazonaws.com"}) {
    const auto result = read("[[egress]]\nhost = \"" + std::string(host) + "\"\n");
    ASSERT_TRUE(result) << line_of(result);
    ASSERT_EQ(result->warnings.size(), 1U) << host;
    EXPECT_TRUE(result->warnings[0].contains("anyone can get a name")) << result->warnings[0];
  }
  const auto own = read("[[egress]]\nhost = \"*.cdn.example.net\"\n");
  ASSERT_TRUE(own);
  EXPECT_TRUE(own->warnings.empty());
}

TEST(Parsing, WarningsOfNamesThatAreNeverResolved_N45) {
  const auto result =
      read("[[egress]]\nhost = \"metadata.google.internal\"\n[[egress]]\nhost = \"*.svc\"\n");
  EXPECT_FALSE(result);  // a single label after the stars is a public suffix
  const auto exact = read(
      "[[egress]]\nhost = \"metadata.google.internal\"\n[[egress]]\nhost = \"*.prod.internal\"\n");
  ASSERT_TRUE(exact) << line_of(exact);
  EXPECT_EQ(exact->warnings.size(), 2U);
}

}  // namespace
}  // namespace policy
