// SCRAM-SHA-256: the words of RFC 7677, and servers that are not to them.
#include "http/scram.h"

#include <gtest/gtest.h>

#include "base/base.h"

namespace http {
namespace {

constexpr const char* kNonce = "rOprNGfwEbeRWgbNEkqO";
constexpr const char* kServerFirst =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

TEST(Scram, SaysTheWordsOfTheStandard) {
  Scram scram("user", kNonce, {});
  EXPECT_EQ(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
  const auto challenge = scram.challenge(kServerFirst);
  ASSERT_TRUE(challenge) << challenge.error().line();
  EXPECT_EQ(challenge->rounds, 4096U);
  const auto salted = scram_salted("pencil", *challenge);
  ASSERT_TRUE(salted);
  EXPECT_EQ(scram.last(*salted),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
  EXPECT_TRUE(scram.proves("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
  for (const char* wrong :
       {"", "v=", "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "e=invalid-proof",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=,x=1"}) {
    EXPECT_FALSE(scram.proves(wrong)) << wrong;
  }
}

TEST(Scram, AServerProvesNothingBeforeItWasAsked) {
  const Scram scram("", kNonce, {});
  EXPECT_FALSE(scram.proves(""));
  EXPECT_FALSE(scram.proves("v="));
}

TEST(Scram, TheBindingIsPartOfWhatIsProven) {
  Scram scram("", kNonce, {.header = "p=tls-server-end-point,,", .data = "DIGEST"});
  ASSERT_TRUE(scram.challenge(kServerFirst));
  EXPECT_TRUE(scram.last(std::string(32, 'k'))
                  .starts_with("c=" + base::base64("p=tls-server-end-point,,DIGEST") + ","));
}

TEST(Scram, AnswersOfAnotherFormAreRefused) {
  const std::string nonce = "r=rOprNGfwEbeRWgbNEkqOxyz";
  const std::string salt = ",s=W22ZaJ0SNY7soEsUEjb6gQ==";
  const std::string rows[] = {
      "",
      "e=other-error",
      "m=extension," + nonce + salt + ",i=4096",
      nonce,
      nonce + salt,
      nonce + salt + ",i=",
      nonce + salt + ",i=4095",
      nonce + salt + ",i=200001",
      nonce + salt + ",i=99999999999999999999999",
      nonce + salt + ",i=-4096",
      nonce + salt + ",i=4096,x=1",
      nonce + ",i=4096" + salt,
      nonce + ",s=,i=4096",
      nonce + ",s=***,i=4096",
      nonce + ",s=" + base::base64(std::string(65, 's')) + ",i=4096",
      "r=rOprNGfwEbeRWgbNEkqO" + salt + ",i=4096",  // nothing of the server's own
      "r=other" + salt + ",i=4096",
      nonce + std::string(3000, 'x') + salt + ",i=4096",
  };
  for (const std::string& row : rows) {
    Scram scram("", kNonce, {});
    EXPECT_FALSE(scram.challenge(row)) << row;
    EXPECT_FALSE(scram.proves("v=")) << row;
  }
}

TEST(Scram, PasswordsBeyondAsciiAreTold) {
  EXPECT_TRUE(is_scram_password("p ,=~!"));
  for (const char* bad : {"", "caf\xc3\xa9", "a\tb", "a\x7f"}) EXPECT_FALSE(is_scram_password(bad));
  EXPECT_FALSE(scram_salted("x", {.salt = "s", .rounds = 1}));
  EXPECT_FALSE(scram_salted("x", {.salt = "", .rounds = 4096}));
}

}  // namespace
}  // namespace http
