// Values out of answers of token endpoints: the one that was asked for, or none.
#include "http/members.h"

#include <gtest/gtest.h>

namespace {

TEST(Members, OfJson) {
  constexpr std::string_view kText =
      R"({"access_token":"a\"\u00e9","expires_in":3600,"ok":true,"none":null,"list":[1],)"
      R"("data":{"data":{"password":"p","x.y":1},"access_token":"inner"},"twice":1,"twice":2})";
  const auto value = [&](std::string_view path) {
    return http::json_value(kText, path).value_or("(none)");
  };
  EXPECT_EQ(value("access_token"), "a\"é");
  EXPECT_EQ(value("expires_in"), "3600");
  EXPECT_EQ(value("ok"), "true");
  EXPECT_EQ(value("data.data.password"), "p");
  EXPECT_EQ(value("data.access_token"), "inner");
  for (const char* path : {"none", "list", "data", "data.data", "twice", "password", "", ".",
                           "access_token.x", "list.0", "data..data", "data.data.x.y"}) {
    EXPECT_EQ(value(path), "(none)") << path;
  }
  for (const char* text : {"", "[]", "\"a\"", "{\"a\":1", "{\"a\":1}x", "<a>1</a>"}) {
    EXPECT_FALSE(http::json_value(text, "a")) << text;
  }
}

TEST(Members, OfXml) {
  const auto value = [](std::string_view text) {
    return http::xml_value(text, "Key").value_or("(none)");
  };
  EXPECT_EQ(value("<R xmlns=\"u\"><Key>AK+/=</Key><KeyTwo>x</KeyTwo></R>"), "AK+/=");
  EXPECT_EQ(value("<Key>a&amp;b&lt;&gt;&quot;&apos;</Key>"), "a&b<>\"'");
  EXPECT_EQ(value("<Key></Key>"), "");
  for (const char* text :
       {"", "<Key>", "<Key>a", "<Key>a<", "<Key>a<b/></Key>", "<Key a=\"1\">x</Key>",
        "<Key>a</Key><Key>b</Key>", "<Key>&#65;</Key>", "<Key>a&b</Key>", "</Key>"}) {
    EXPECT_EQ(value(text), "(none)") << text;
  }
}

}  // namespace
