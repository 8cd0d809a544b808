// Recipes: what each vendor is asked, and that nothing but a plain answer is a key.
#include "broker/recipe.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "broker/jwt.h"

namespace {

using broker::Mintage;
using broker::Minted;
using broker::Recipe;

std::string new_key(const char* kind, int bits) {
  EVP_PKEY* key = bits != 0 ? EVP_PKEY_Q_keygen(nullptr, nullptr, kind, std::size_t(bits))
                            : EVP_PKEY_Q_keygen(nullptr, nullptr, kind, "P-256");
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string pem(bytes, static_cast<std::size_t>(size));
  BIO_free(bio);
  EVP_PKEY_free(key);
  return pem;
}

const std::string& rsa_key() {
  static const std::string kKey = new_key("RSA", 2048);
  return kKey;
}

policy::Credential credential(policy::MintKind kind) {
  policy::Credential out;
  out.name = "api";
  out.hosts = {"api.github.com"};
  out.ports = {443};
  out.methods = {"GET"};
  out.paths = {"/repos/acme/app/issues"};
  policy::Mint& mint = out.source.mint;
  mint.kind = kind;
  mint.url = "https://auth.example.com/token";
  mint.client = "7";
  mint.read = "secret/data/app";
  mint.field = "password";
  mint.role = "arn:aws:iam::1:role/r";
  mint.region = "eu-central-1";
  return out;
}

struct Minting {
  Minting(policy::MintKind kind, std::string secret)
      : of(credential(kind)), secret_(std::move(secret)) {}
  Mintage mintage() { return {of, secret_, "aaaaaaaaaaaa", "nonce", 1'440'938'160}; }
  policy::Credential of;
  std::string secret_;
};

plan::MintAsk asked(base::Result<broker::Step> step) {
  EXPECT_TRUE(step) << step.error().line();
  return step ? std::get<plan::MintAsk>(*step) : plan::MintAsk{};
}

// "" for a key, else why there is none; `key` gets what was minted.
std::string outcome(base::Result<broker::Step> step, Minted* key) {
  if (!step) return step.error().what;
  if (!std::holds_alternative<Minted>(*step)) return "another request";
  if (key != nullptr) *key = std::get<Minted>(*step);
  return "";
}

using Found = std::map<std::string, std::string>;

TEST(Recipe, ClientCredentials) {
  Minting minting(policy::MintKind::oauth2, "p:w/1");
  minting.of.source.mint.client = "me:1";
  minting.of.source.mint.scope = "a b";
  const auto ask = asked(Recipe(minting.mintage()).begin());
  EXPECT_EQ(ask.host + " " + ask.method + " " + ask.target, "auth.example.com POST /token");
  EXPECT_EQ(ask.headers.at("authorization"), "Basic " + base::base64("me%3A1:p%3Aw%2F1"));
  EXPECT_EQ(ask.headers.at("content-type"), "application/x-www-form-urlencoded");
  EXPECT_EQ(ask.body, "grant_type=client_credentials&scope=a%20b");
  minting.of.source.mint.auth = policy::ClientAuth::body;
  const auto in_body = asked(Recipe(minting.mintage()).begin());
  EXPECT_FALSE(in_body.headers.contains("authorization"));
  EXPECT_EQ(in_body.body,
            "grant_type=client_credentials&scope=a%20b&client_id=me%3A1&client_secret=p%3Aw%2F1");
}

TEST(Recipe, RefreshTokens) {
  Minting minting(policy::MintKind::oauth2, R"({"refresh_token":"r1","client_secret":"c"})");
  minting.of.source.mint.grant = policy::Grant::refresh_token;
  EXPECT_EQ(asked(Recipe(minting.mintage()).begin()).body,
            "grant_type=refresh_token&refresh_token=r1");
  Recipe recipe(minting.mintage());
  (void)recipe.begin();
  Minted key;
  EXPECT_EQ(outcome(recipe.take(
                        {.status = 200, .found = {{"access_token", "t"}, {"refresh_token", "r2"}}}),
                    &key),
            "");
  EXPECT_EQ(key.rotated, "r2");
  minting.secret_ = "{}";
  EXPECT_FALSE(Recipe(minting.mintage()).begin());
  minting.secret_ = "bare";
  minting.of.source.mint.auth = policy::ClientAuth::none;
  EXPECT_EQ(asked(Recipe(minting.mintage()).begin()).body,
            "grant_type=refresh_token&refresh_token=bare&client_id=7");
}

TEST(Recipe, OnlyAPlainAnswerIsAKey) {
  struct Row {
    const char* what;
    plan::MintTold told;
    std::string outcome;
    std::uint64_t lives = 0;
  };
  const Row rows[] = {
      {"whole",
       {.status = 200,
        .found = {{"access_token", "t"}, {"token_type", "bEaRer"}, {"expires_in", "60"}}},
       "",
       60},
      {"no end said", {.status = 200, .found = {{"access_token", "t"}}}, "", 300},
      {"an end that is none",
       {.status = 200, .found = {{"access_token", "t"}, {"expires_in", "-1"}}},
       "",
       300},
      {"an end that is over",
       {.status = 200, .found = {{"access_token", "t"}, {"expires_in", "0"}}},
       "",
       300},
      {"an end for ever",
       {.status = 200, .found = {{"access_token", "t"}, {"expires_in", "99999999999999"}}},
       "",
       366ULL * 86400},
      {"no key", {.status = 200, .found = {}}, "no key in the answer"},
      {"lines", {.status = 200, .found = {{"access_token", "t\r\nX: y"}}}, "a key that is none"},
      {"a space", {.status = 200, .found = {{"access_token", "t u"}}}, "a key that is none"},
      {"another type",
       {.status = 200, .found = {{"access_token", "t"}, {"token_type", "mac"}}},
       "a key of another type"},
      {"status", {.status = 500, .found = {{"access_token", "t"}}}, "status 500"},
      {"redirect", {.status = 302, .found = {{"access_token", "t"}}}, "status 302"},
      {"a word",
       {.status = 400, .found = {{"error", "invalid_client"}}},
       "status 400: invalid_client"},
      {"no word", {.status = 400, .found = {{"error", "your secret hush-hush"}}}, "status 400"},
      {"trouble",
       {.problem = "timeout", .status = 200, .found = {{"access_token", "t"}}},
       "timeout"},
  };
  for (const Row& row : rows) {
    Minting minting(policy::MintKind::oauth2, "secret");
    Recipe recipe(minting.mintage());
    (void)recipe.begin();
    Minted key;
    EXPECT_EQ(outcome(recipe.take(row.told), &key), row.outcome) << row.what;
    if (row.outcome.empty()) EXPECT_EQ(key.lives_s, row.lives) << row.what;
  }
}

TEST(Recipe, VaultReadsEitherStoreAndLeases) {
  Minting minting(policy::MintKind::vault, "hvs.x");
  const auto ask = asked(Recipe(minting.mintage()).begin());
  EXPECT_EQ(ask.method + " " + ask.target, "GET /token/v1/secret/data/app");
  EXPECT_EQ(ask.headers.at("x-vault-token"), "hvs.x");
  const auto take = [&](Found found, Minted* key) {
    Recipe recipe(minting.mintage());
    (void)recipe.begin();
    return outcome(recipe.take({.status = 200, .found = std::move(found)}), key);
  };
  Minted key;
  EXPECT_EQ(take({{"data.data.password", "two"}, {"data.password", "one"}}, &key), "");
  EXPECT_EQ(key.secret, "two");
  EXPECT_EQ(take({{"data.password", "one"}, {"lease_duration", "2764800"}}, &key), "");
  EXPECT_EQ(key.secret + " " + std::to_string(key.lives_s), "one 300");
  EXPECT_EQ(take({{"data.password", "d"}, {"lease_id", "db/1"}, {"lease_duration", "60"}}, &key),
            "");
  EXPECT_EQ(key.lease + " " + std::to_string(key.lives_s), "db/1 60");
  EXPECT_EQ(take({{"lease_id", "db/1"}}, &key), "no such field in the answer");
  EXPECT_EQ(take({{"data.password", "a\nb"}}, &key), "a key that is none");
  const auto renew = broker::renewal(minting.mintage(), "db/\"1");
  ASSERT_TRUE(renew);
  EXPECT_EQ(renew->target + " " + renew->body,
            R"(/token/v1/sys/leases/renew {"lease_id":"db/\"1"})");
  EXPECT_EQ(broker::renewed_for({.status = 200, .found = {{"lease_duration", "9"}}}), 9U);
  EXPECT_EQ(broker::renewed_for({.status = 400, .found = {{"lease_duration", "9"}}}), 0U);
}

TEST(Recipe, GithubAsksForTheBindingsRepositoriesAndPermissions) {
  Minting minting(policy::MintKind::github_app, rsa_key());
  Recipe recipe(minting.mintage());
  EXPECT_EQ(asked(recipe.begin()).target, "/token/repos/acme/app/installation");
  const auto second = asked(recipe.take({.status = 200, .found = {{"id", "12"}}}));
  EXPECT_EQ(second.target, "/token/app/installations/12/access_tokens");
  EXPECT_EQ(second.body, R"({"repositories":["app"],"permissions":{"issues":"read"}})");
  Minted key;
  EXPECT_EQ(outcome(recipe.take({.status = 201,
                                 .found = {{"token", "ghs_x"},
                                           {"expires_at", "2015-08-30T13:36:00Z"},
                                           {"repository_selection", "selected"}}}),
                    &key),
            "");
  EXPECT_EQ(key.lives_s, 3600U);
  Recipe wide(minting.mintage());
  (void)wide.begin();
  (void)wide.take({.status = 200, .found = {{"id", "12"}}});
  EXPECT_EQ(outcome(wide.take({.status = 201,
                               .found = {{"token", "ghs_x"}, {"repository_selection", "all"}}}),
                    nullptr),
            "a key for more than was asked for");
  Recipe odd(minting.mintage());
  (void)odd.begin();
  EXPECT_EQ(outcome(odd.take({.status = 200, .found = {{"id", "../../x"}}}), nullptr),
            "no installation in the answer");
}

TEST(Recipe, AwsNeedsAllThreeValues) {
  Minting minting(policy::MintKind::aws_sts, "AKIA:secret");
  minting.of.hosts = {"data.s3.eu-central-1.amazonaws.com"};
  minting.of.paths = {"/**"};
  minting.of.inject.kind = policy::InjectKind::sigv4;
  minting.of.inject.service = "s3";
  const auto ask = asked(Recipe(minting.mintage()).begin());
  EXPECT_TRUE(ask.headers.at("authorization").contains("/20150830/eu-central-1/sts/aws4_request"));
  EXPECT_FALSE(ask.body.contains("secret")) << ask.body;
  EXPECT_TRUE(
      ask.body.contains("RoleSessionName=cerco-aaaaaaaaaaaa&DurationSeconds=3600&Policy=%7B"));
  const Found whole = {{"AccessKeyId", "A"}, {"SecretAccessKey", "s"}, {"SessionToken", "t"}};
  for (const auto& [missing, ignored] : whole) {
    Found part = whole;
    part.erase(missing);
    Recipe recipe(minting.mintage());
    (void)recipe.begin();
    EXPECT_EQ(outcome(recipe.take({.status = 200, .found = part}), nullptr), "no key in the answer")
        << missing;
  }
  minting.secret_ = "nothing";
  EXPECT_FALSE(Recipe(minting.mintage()).begin());
}

TEST(Recipe, InstantsOfVendors) {
  EXPECT_EQ(broker::instant_of("2015-08-30T12:36:00Z"), 1'440'938'160);
  EXPECT_EQ(broker::instant_of("2015-08-30T12:36:00.123Z"), 1'440'938'160);
  for (const char* bad : {"", "2015-08-30", "2015-08-30 12:36:00Z", "2015-08-30T12:36:00+02:00",
                          "x015-08-30T12:36:00Z"}) {
    EXPECT_FALSE(broker::instant_of(bad)) << bad;
  }
}

TEST(Jwt, OnlyWithKeysThatFit) {
  const auto sign = [](policy::JwtAlgorithm algorithm, const std::string& pem) {
    return broker::sign_jwt(algorithm, pem, "k", "{}").has_value();
  };
  const std::string p256 = new_key("EC", 0);
  const std::string small = new_key("RSA", 1024);
  EXPECT_TRUE(sign(policy::JwtAlgorithm::rs256, rsa_key()));
  EXPECT_TRUE(sign(policy::JwtAlgorithm::es256, p256));
  EXPECT_FALSE(sign(policy::JwtAlgorithm::es256, rsa_key()));
  EXPECT_FALSE(sign(policy::JwtAlgorithm::rs256, p256));
  EXPECT_FALSE(sign(policy::JwtAlgorithm::rs256, small));
  for (const char* bad : {"", "x", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"}) {
    EXPECT_FALSE(sign(policy::JwtAlgorithm::rs256, bad));
  }
  const auto parts = *broker::sign_jwt(policy::JwtAlgorithm::es256, p256, "", R"({"a":1})");
  EXPECT_TRUE(parts.starts_with(broker::base64url(R"({"alg":"ES256","typ":"JWT"})") + "." +
                                broker::base64url(R"({"a":1})") + "."));
  EXPECT_EQ(parts.find_first_of("+/="), std::string::npos);
}

}  // namespace
