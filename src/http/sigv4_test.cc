// Signature Version 4: the vendor's own examples, claims, keys, and what may not change a
// signature.
#include "http/sigv4.h"

#include <gtest/gtest.h>

#include "base/base.h"

namespace {

// The account, day, region and service of AWS's published test suite.
constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const http::SigV4Scope kScope = {"20150830", "us-east-1", "service"};

http::SigV4Request request(std::string method, std::string target) {
  return {.method = std::move(method),
          .target = std::move(target),
          .headers = {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
          .payload_hash = base::sha256(""),
          .time = "20150830T123600Z",
          .scope = kScope};
}

std::string signature(const http::SigV4Request& request) {
  return http::sigv4_signature(request, http::sigv4_key(kSecret, request.scope));
}

TEST(SigV4, PublishedExamples) {
  // get-vanilla, get-vanilla-query-order-key-case, post-vanilla, post-x-www-form-urlencoded.
  EXPECT_EQ(signature(request("GET", "/")),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  EXPECT_EQ(signature(request("GET", "/?Param2=value2&Param1=value1")),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  EXPECT_EQ(signature(request("POST", "/")),
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b");
  auto form = request("POST", "/");
  form.headers.emplace_back("content-type", "application/x-www-form-urlencoded");
  form.payload_hash = base::sha256("Param1=value1");
  EXPECT_EQ(signature(form), "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a");
  EXPECT_EQ(http::sigv4_authorization(request("GET", "/"), "AKIDEXAMPLE",
                                      http::sigv4_key(kSecret, kScope)),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

// A key signs in its own scope alone (N174).
TEST(SigV4, N174AKeyIsOfOneDayRegionAndService) {
  const std::string key = http::sigv4_key(kSecret, kScope);
  EXPECT_EQ(key.size(), 32U);
  for (const http::SigV4Scope& other : {http::SigV4Scope{"20150831", "us-east-1", "service"},
                                        http::SigV4Scope{"20150830", "us-west-1", "service"},
                                        http::SigV4Scope{"20150830", "us-east-1", "s3"}}) {
    EXPECT_NE(http::sigv4_key(kSecret, other), key);
  }
}

TEST(SigV4, WhatIsSigned) {
  const std::string plain = signature(request("GET", "/a/b?x=1&y=2"));
  EXPECT_EQ(signature(request("GET", "/a/b?y=2&x=1")), plain) << "order of the query";
  EXPECT_EQ(signature(request("GET", "/a/b?x=%31&y=2")), plain) << "spelling of the query";
  EXPECT_NE(signature(request("GET", "/a/b?x=1&y=3")), plain);
  EXPECT_NE(signature(request("GET", "/a/B?x=1&y=2")), plain);
  EXPECT_NE(signature(request("PUT", "/a/b?x=1&y=2")), plain);
  auto spaced = request("GET", "/");
  spaced.headers.emplace_back("x-amz-meta-a", "  a   b  ");
  auto single = request("GET", "/");
  single.headers.emplace_back("x-amz-meta-a", "a b");
  EXPECT_EQ(signature(spaced), signature(single));
  EXPECT_NE(signature(single), signature(request("GET", "/")));
  // S3 escapes a path once, the others what is escaped already once more.
  auto s3 = request("GET", "/a%20b");
  s3.scope.service = "s3";
  auto raw = s3;
  raw.target = "/a b";
  EXPECT_EQ(signature(s3), signature(raw));
  EXPECT_NE(signature(request("GET", "/a%20b")), signature(request("GET", "/a b")));
}

TEST(SigV4, Claims) {
  constexpr std::string_view kGood =
      "AWS4-HMAC-SHA256 Credential=AKIA/20150830/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-date, Signature=00ff";
  const auto claim = http::sigv4_claim(kGood);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->id, "AKIA");
  EXPECT_EQ(claim->scope, (http::SigV4Scope{"20150830", "us-east-1", "s3"}));
  EXPECT_EQ(claim->headers, (std::vector<std::string>{"host", "x-amz-date"}));
  EXPECT_TRUE(http::sigv4_claim(
      "AWS4-HMAC-SHA256 Credential=A/1/r/s/aws4_request,SignedHeaders=host,Signature=0"));
  for (const char* bad :
       {"", "Bearer x", "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA256 Credential=A/1/r/s/aws4_request",
        "AWS4-HMAC-SHA256 Credential=A/1/r/s/aws5_request, SignedHeaders=h, Signature=0",
        "AWS4-HMAC-SHA256 Credential=A/1/r/s/x/aws4_request, SignedHeaders=h, Signature=0",
        "AWS4-HMAC-SHA256 Credential=/1/r/s/aws4_request, SignedHeaders=h, Signature=0",
        "AWS4-HMAC-SHA256 Credential=A/1/r/s/aws4_request, Credential=B/1/r/s/aws4_request, "
        "Signature=0",
        "AWS4-HMAC-SHA256 Credential=A/1/r/s/aws4_request, SignedHeaders=h, Signature=0, More=1",
        "AWS4-HMAC-SHA512 Credential=A/1/r/s/aws4_request, SignedHeaders=h, Signature=0",
        "AWS4-ECDSA-P256-SHA256 Credential=A/1/r/s/aws4_request, SignedHeaders=h, Signature=0"}) {
    EXPECT_FALSE(http::sigv4_claim(bad)) << bad;
  }
}

TEST(SigV4, KeysOfASource) {
  const auto plain = http::sigv4_keys("AKIA:se/cr+et");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->id + " " + plain->secret + " " + plain->token, "AKIA se/cr+et ");
  const auto session = http::sigv4_keys("ASIA:secret:to:ken");
  ASSERT_TRUE(session);
  EXPECT_EQ(session->token, "to:ken");
  const auto json = http::sigv4_keys(
      R"({"Version":1,"AccessKeyId":"ASIA","SecretAccessKey":"s","SessionToken":"t"})");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->id + json->secret + json->token, "ASIAst");
  for (const char* bad : {"", "AKIA", ":secret", "AKIA:", "{}", "{\"AccessKeyId\":\"A\"}", "A:b\nc",
                          "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"b\\nc\"}"}) {
    EXPECT_FALSE(http::sigv4_keys(bad)) << bad;
  }
}

TEST(SigV4, Times) {
  EXPECT_EQ(http::sigv4_time(1440938160), "20150830T123600Z");
  EXPECT_EQ(http::sigv4_time(0), "19700101T000000Z");
}

}  // namespace
