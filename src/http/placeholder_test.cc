// Finding placeholders in requests and taking secrets out of responses.
#include <gtest/gtest.h>

#include <algorithm>

#include "http/http.h"

namespace {

using http::Finding;
using http::Where;

constexpr std::string_view kS = "phs7q2m4xk3n5v2ab";
constexpr std::string_view kT = "pht3w6b5yd2c4f7gh";

std::vector<http::Marked> marked() {
  http::Slot basic;
  basic.place = http::Place::basic;
  basic.user = "git";
  return {{std::string(kS), http::header_slot("Authorization", "Bearer {secret}")},
          {std::string(kT), basic}};
}

http::RequestHead request(std::vector<http::Field> fields) {
  http::RequestHead head;
  head.method = "GET";
  head.target = "/v1/me";
  head.host = "api.example.com";
  head.fields = std::move(fields);
  return head;
}

std::vector<Finding> found(std::string_view name, std::string_view value) {
  return http::find_placeholders(request({{std::string(name), std::string(value), ""}}), marked());
}

std::string percent(std::string_view text) {
  std::string out;
  for (char c : text) out += "%" + base::hex(std::string(1, c));
  return out;
}

TEST(Placeholder, BoundPlaceIsExactlyTheSlot) {
  const std::string s(kS);
  EXPECT_EQ(found("authorization", "Bearer " + s),
            (std::vector<Finding>{{0, Where::bound, "authorization"}}));
  EXPECT_EQ(found("authorization", "bearer " + s)[0].where, Where::bound);
  for (const std::string& value :
       {s, "Bearer  " + s, "Bearer " + s + " ", "Bearer " + s + "x", "token " + s, "Bearer x" + s,
        "Bearer " + s + ", Bearer other"}) {
    EXPECT_EQ(found("authorization", value)[0].where, Where::header) << value;
  }
}

// N159 N160: anywhere else it is a misuse.
TEST(Placeholder, N159N160OtherPlaces) {
  for (const char* name : {"x-debug", "user-agent", "referer", "cookie", "x-api-key"}) {
    EXPECT_EQ(found(name, "a " + std::string(kS)),
              (std::vector<Finding>{{0, Where::header, name}}));
    EXPECT_EQ(found(name, percent(kS)), (std::vector<Finding>{{0, Where::header, name}}));
  }
  auto head = request({});
  for (const std::string& target :
       {"/v1/" + std::string(kS), "/v1?key=" + std::string(kS), "/v1?key=" + percent(kS),
        "/v1?key=" + percent(percent(kS)), "/v1/" + percent(percent(percent(kS)))}) {
    head.target = target;
    EXPECT_EQ(http::find_placeholders(head, marked()), (std::vector<Finding>{{0, Where::url, ""}}))
        << target;
  }
  head = request({});
  head.host = std::string(kS) + ".example.com";
  EXPECT_EQ(http::find_placeholders(head, marked())[0].where, Where::url);
  EXPECT_EQ(found("x-" + std::string(kS), "a")[0].where, Where::header);
}

// N162: another credential's placeholder in the bound header is not that credential's slot.
TEST(Placeholder, N162OtherCredential) {
  EXPECT_EQ(found("authorization", "Bearer " + std::string(kT)),
            (std::vector<Finding>{{1, Where::header, "authorization"}}));
}

// N167: Basic is decoded, exactly.
TEST(Placeholder, N167Basic) {
  const std::string t(kT);
  EXPECT_EQ(found("authorization", "Basic " + base::base64("git:" + t)),
            (std::vector<Finding>{{1, Where::bound, "authorization"}}));
  EXPECT_EQ(found("authorization", "basic " + base::base64("git:" + t))[0].where, Where::bound);
  for (const std::string& pair :
       {"other:" + t, "git:" + t + "x", t + ":", ":" + t, "git:" + percent(t)}) {
    EXPECT_EQ(found("authorization", "Basic " + base::base64(pair))[0].where, Where::basic) << pair;
  }
  EXPECT_EQ(found("authorization", "Basic " + base::base64("u:" + std::string(kS)))[0],
            (Finding{0, Where::basic, "authorization"}));
  EXPECT_EQ(found("x-other", "Basic " + base::base64("git:" + t))[0].where, Where::basic);
}

TEST(Placeholder, NothingWhereNothingIs) {
  EXPECT_TRUE(found("authorization", "Bearer something-else").empty());
  EXPECT_TRUE(found("authorization", "Basic !!!").empty());
  EXPECT_TRUE(found("authorization", std::string(kS).substr(1)).empty());
}

TEST(Placeholder, RenderedSlotHoldsTheSecret) {
  EXPECT_EQ(http::render(marked()[0].slot, "abc"), "Bearer abc");
  EXPECT_EQ(http::render(marked()[1].slot, "abc"), "Basic " + base::base64("git:abc"));
  EXPECT_EQ(http::render(http::header_slot("x-key", "{secret}"), "abc"), "abc");
}

// F53: split at every byte.
TEST(Placeholder, F53BodyScanAcrossEveryCut) {
  const std::string text = "before " + std::string(kT) + " after";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    http::BodyScan scan(marked());
    auto seen = scan.scan(std::string_view(text).substr(0, cut));
    for (std::size_t index : scan.scan(std::string_view(text).substr(cut))) seen.push_back(index);
    EXPECT_EQ(seen, (std::vector<std::size_t>{1})) << cut;
  }
  http::BodyScan bytes(marked());
  std::vector<std::size_t> seen;
  for (char c : text + text) {
    for (std::size_t index : bytes.scan(std::string_view(&c, 1))) seen.push_back(index);
  }
  EXPECT_EQ(seen, (std::vector<std::size_t>{1}));
}

// --- Redaction -------------------------------------------------------------------------------

constexpr std::string_view kSecret = "r/eal\"Token+0123456789==";

http::Redaction redaction() {
  http::Slot basic;
  basic.place = http::Place::basic;
  basic.user = "git";
  return *http::Redaction::of(kSecret, kS, basic);
}

std::string streamed(const http::Redaction& redact, std::string_view text, std::size_t step) {
  http::BodyRedactor body(redact);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) out += body.push(text.substr(at, step));
  return out + body.finish();
}

// N154: every rendered form, in heads and bodies, whole and cut anywhere.
TEST(Redaction, N154EveryFormAtEveryCut) {
  const auto redact = redaction();
  const std::string secret(kSecret);
  const std::string s(kS);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {secret, s},
      {"a " + secret + secret + " b", "a " + s + s + " b"},
      {base::base64(secret), base::base64(s)},
      {"Basic " + base::base64("git:" + secret), "Basic " + base::base64("git:" + s)},
      {"k=r%2Feal%22Token%2B0123456789%3D%3D&", "k=" + s + "&"},
      {"k=r%2feal%22Token%2b0123456789%3d%3d&", "k=" + s + "&"},
      {"\"r/eal\\\"Token+0123456789==\"", "\"" + s + "\""},
      {"\"r\\/eal\\\"Token+0123456789==\"", "\"" + s + "\""},
      {"r/eal\"Token+012345678 ", "r/eal\"Token+012345678 "},
      {"rr/er/eal\"Token+0123456789==", "rr/e" + s},
  };
  for (const auto& [text, wanted] : rows) {
    EXPECT_EQ(redact.clean(text), wanted);
    for (std::size_t step = 1; step <= text.size(); ++step)
      EXPECT_EQ(streamed(redact, text, step), wanted) << step;
  }
  std::vector<http::Field> fields = {{"location", "/x?k=" + secret, "Location"}};
  redact.clean(fields);
  EXPECT_EQ(fields[0].value, "/x?k=" + s);
}

// A body that ends within the secret would give away all but its end; a few bytes may be anything.
TEST(Redaction, N154WhatEndsWithinTheSecretIsMasked) {
  const auto redact = redaction();
  const std::string secret(kSecret);
  for (std::size_t size = 1; size < secret.size(); ++size) {
    const std::string text = "key " + secret.substr(0, size);
    const std::string masked = "key " + std::string(kS).substr(0, size) +
                               std::string(size > kS.size() ? size - kS.size() : 0, '*');
    const std::string& wanted = size < 8 ? text : masked;
    EXPECT_EQ(redact.clean(text), wanted);
    for (std::size_t step = 1; step <= text.size(); ++step)
      EXPECT_EQ(streamed(redact, text, step), wanted) << step;
  }
  const std::string encoded = base::base64("Bearer " + secret).substr(0, 24);
  EXPECT_NE(redact.clean(encoded), encoded);
  // Of a short one half is much.
  const auto four = *http::Redaction::of("abcd", "wxyz", {});
  EXPECT_EQ(four.clean("x abc"), "x wxy");
  EXPECT_EQ(four.clean("x a"), "x a");
}

TEST(Redaction, N154Hexadecimal) {
  const auto redact = redaction();
  for (const bool upper : {false, true}) {
    const auto hex = [upper](std::string_view text) {
      std::string out = base::hex(text);
      if (upper) std::ranges::transform(out, out.begin(), [](char c) { return std::toupper(c); });
      return out;
    };
    EXPECT_EQ(redact.clean("x" + hex(kSecret) + "y"), "x" + hex(kS) + "y");
  }
}

// In Base64 a secret looks different behind one, two or three other bytes.
TEST(Redaction, Base64OfWhatHoldsTheSecretTellsNothing) {
  const std::string secret = "sk-\xff\xfe\xfb\xefv-9f8e7d6c5b4a39281706";
  const auto redact = *http::Redaction::of(secret, kS, {});
  for (const std::string before : {"", "B", "Be", "Bea", "Bearer ", "{\"k\":\""}) {
    const std::string text = base::base64(before + secret + "\"}");
    std::string safe = text;
    std::ranges::replace(safe, '+', '-');
    std::ranges::replace(safe, '/', '_');
    EXPECT_NE(text, safe);
    for (const std::string& form : {text, safe}) {
      for (const std::string& cleaned : {redact.clean(form), streamed(redact, form, 5)}) {
        std::string plain = cleaned;
        std::ranges::replace(plain, '-', '+');
        std::ranges::replace(plain, '_', '/');
        const auto decoded = base::from_base64(plain);
        // Whatever it decodes to, no four bytes of the secret in a row are left but at its ends.
        for (std::size_t at = 3; at + 7 <= secret.size(); ++at) {
          const std::string part = base::base64(secret.substr(at, 3));
          EXPECT_FALSE(plain.contains(part)) << before << " " << plain;
          EXPECT_FALSE(decoded && decoded->contains(secret.substr(at, 4))) << before;
        }
      }
    }
  }
}

// The name of a field comes back as well, often in lower case.
TEST(Redaction, AFieldWithTheSecretInItsNameIsDropped) {
  const auto redact = *http::Redaction::of("Sk-Abc-0123456789", kS, {});
  std::vector<http::Field> fields = {{"x-sk-abc-0123456789", "1", "X-Sk-Abc-0123456789"},
                                     {"sk-abc-0123456789", "2", "sk-abc-0123456789"},
                                     {"sk-abc", "3", "Sk-Abc"}};
  redact.clean(fields);
  ASSERT_EQ(fields.size(), 1U);
  EXPECT_EQ(fields[0].value, "3");
}

// An event stream goes on at once unless it ends in what may be the secret.
TEST(Redaction, HoldsBackOnlyWhatMayBeTheSecret) {
  const auto redact = redaction();
  http::BodyRedactor body(redact);
  EXPECT_EQ(body.push("data: 1\n\n"), "data: 1\n\n");
  EXPECT_EQ(body.push("data: r/eal"), "data: ");
  EXPECT_EQ(body.push("ly\n\n"), "r/eally\n\n");
  EXPECT_EQ(body.finish(), "");
}

TEST(Redaction, LengthIsKeptByAPlaceholderOfTheSameLength) {
  EXPECT_TRUE(http::Redaction::of("abcdefgh", "ijklmnop", {})->keeps_length());
  EXPECT_FALSE(http::Redaction::of("abcdefgh", "ijklmnopq", {})->keeps_length());
}

TEST(Redaction, SecretsThatAreCommonTextAreLeft) {
  EXPECT_EQ(http::Redaction::of("abc", kS, {})->clean("abcabc"), "abcabc");
  EXPECT_EQ(http::Redaction::of("abcd", "wxyz", {})->clean("abcdabc."), "wxyzabc.");
}

}  // namespace
