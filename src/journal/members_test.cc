// Tests of the one-pass JSON reader.
#include "journal/members.h"

#include <gtest/gtest.h>

namespace journal {
namespace {

TEST(Members, ReadsWhatJsonObjectWrites) {
  base::JsonObject object;
  object.add("host", "a\"\n\x01\xc3\xa4")
      .add("port", 443)
      .add("tls", true)
      .raw("list", R"([1,{"x":null}])");
  const auto members = Members::parse(object.members());
  ASSERT_TRUE(members) << members.error().line();
  EXPECT_EQ(members->text("host"), "a\"\n\x01\xc3\xa4");
  EXPECT_EQ(members->number("port"), 443U);
  EXPECT_EQ(members->raw("tls"), "true");
  EXPECT_EQ(members->raw("list"), R"([1,{"x":null}])");
  EXPECT_EQ(members->raw("other"), "");
  EXPECT_EQ(members->text("port"), "");
  EXPECT_FALSE(members->number("host"));
}

TEST(Members, DecodesEscapes) {
  EXPECT_EQ(decode_string(R"("\u0041\ud83d\ude00\ud800x\/\t\b\f\r")"),
            "A\U0001F600\uFFFDx/\t\b\f\r");
}

struct Refused {
  std::string text;
  std::string why;
};

TEST(Members, RefusesWhatCouldBeReadInTwoWays) {
  const std::vector<Refused> table = {
      {R"("a":1,"a":2)", "a key appears twice"},
      {R"("\u0061":1)", "a key is not of a-z, 0-9 and _"},
      {R"("A":1)", "a key is not of a-z, 0-9 and _"},
      {R"("":1)", "a key is not of a-z, 0-9 and _"},
      {R"(a:1)", "a member has no key"},
      {R"("a":1,)", "a member has no key"},
      {R"("a":1 "b":2)", "members are not separated"},
      {R"("a":1})", "members are not separated"},
      {R"("a":)", "a value is missing"},
      {"\"a\":\"x\ny\"", "a string holds a raw control character"},
      {"\"a\":1\n", "members are not separated"},
      {"\"a\":[1,\n2]", "a value is no JSON"},
      {"\"a\":\"\xff\"", "a string is not UTF-8"},
      {R"("a":"x)", "a string does not end"},
      {R"("a":"\x")", "an unknown escape"},
      {R"("a":"\u12g4")", "an unknown escape"},
      {R"("a":9007199254740992)", "an integer is not below 2^53"},
      {R"("a":[18446744073709551616])", "an integer is not below 2^53"},
      {R"("a":01)", "a number has leading zeros"},
      {R"("a":-0)", "a number is -0"},
      {R"("a":1.)", "a value is no JSON"},
      {R"("a":NaN)", "a value is no JSON"},
      {R"("a":tru)", "a value is no JSON"},
      {R"("a":{"b":1)", "an object does not end"},
      {R"("a":[1)", "an array does not end"},
      {R"("a":)" + std::string(40, '[') + std::string(40, ']'), "nested too deeply"},
  };
  for (const Refused& row : table) {
    const auto members = Members::parse(row.text);
    ASSERT_FALSE(members) << row.text;
    EXPECT_EQ(members.error().what, row.why) << row.text;
  }
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i > 0 ? ",\"a" : "\"a") + std::to_string(i) + "\":1";
  EXPECT_FALSE(Members::parse(many));
}

TEST(Members, TakesTheLimitsThemselves) {
  for (const char* text :
       {"", R"("a":9007199254740991)", R"("a":-9007199254740991)", R"("a":0.5)", R"("a":1e+9)",
        R"("a":{},"b":[])", R"("a":{"K":"v","k k":[true,false,null]})"}) {
    EXPECT_TRUE(Members::parse(text)) << text;
  }
  EXPECT_TRUE(Members::parse_object("{}"));
  for (const char* text : {"", "{", "}", "{} ", " {}", "[]"})
    EXPECT_FALSE(Members::parse_object(text)) << text;
}

}  // namespace
}  // namespace journal
