// The readers of JSON and TOML: strict forms, bounds.
#include "policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "policy/testing.h"

namespace policy {
namespace {

using testing::line_of;
using testing::read;
using testing::starts_with_place;

// --- JSON, byte by byte -----------------------------------------------------------------------

TEST(Json, StrictForms) {
  for (std::string_view bad : {"{",
                               "{}x",
                               "{\"task\":\"a\",}",
                               "{'task':'a'}",
                               "{\"task\":\"a\" \"code\":\"b\"}",
                               "{\"version\":01}",
                               "{\"version\":1.}",
                               "{\"version\":+1}",
                               "{\"version\":0x1}",
                               "{\"version\":NaN}",
                               "{\"task\":\"\x01\"}",
                               "{\"task\":\"\\x41\"}",
                               "{\"task\":\"\\ud800\"}",
                               "{\"task\":\"\\ud800\\u0041\"}",
                               "{\"task\":\"\\u12\"}",
                               "{\"task\":\"\xff\"}",
                               "{\"task\":\"a}",
                               "{\"task\":tru}",
                               "{\"version\":1e999}",
                               "{\"version\":99999999999999999999}",
                               "{task:1}",
                               "{\"task\":\"a\"/**/}",
                               "{\"task\":\"a\", \"task\":\"a\"}",
                               "{\"task\":null}"}) {
    const auto result = read(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_TRUE(starts_with_place(result.error().line())) << result.error().line();
  }
  EXPECT_TRUE(
      read(" \r\n\t{ \"version\" : 1 , \"task\":\"\\u0061\\t\" }").error().line().contains("task"));
  const auto good = read("{\"version\":1,\"task\":\"\\u0061b\",\"limits\":{\"cpus\":0.5e0}}");
  ASSERT_TRUE(good) << line_of(good);
  EXPECT_EQ(good->policy.task, "ab");
  EXPECT_EQ(good->policy.limits.cpus_milli, 500U);
}

TEST(Json, DepthAndSizeAreBounded) {
  const auto nested = [](int depth) {
    return "{\"x\":" + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']') + "}";
  };
  EXPECT_TRUE(line_of(read(nested(100'000))).contains("more than 64 levels"));
  EXPECT_TRUE(line_of(read(nested(10))).contains("unknown key"));
  EXPECT_TRUE(
      line_of(read("{" + std::string(1024 * 1024, ' ') + "}")).contains("larger than 1 MiB"));
}

TEST(Toml, OnlyStringsAndCommentsHaveMoreThanAscii) {
  for (std::string_view bad :
       {"hose\xcd\x9c = 1\n", "task = \"a\"\xc2\xa1\n", "\xe2\x80\x8btask = \"a\"\n",
        "task\xc4\x80= 'a'\n", "[limits]\xc2\xa0\n", "task = \"\"\"a\"\"\"\xc2\xa1\n", "\xff\n"}) {
    EXPECT_TRUE(starts_with_place(line_of(read(bad)))) << line_of(read(bad));
  }
  EXPECT_TRUE(
      read("# \xc2\xa1 \xe2\x80\x8b\n[environment]\nset = { A = \"\xc3\xa9\", B = '\xc3\xa9', C = "
           "\"\"\"\n\xc3\xa9\\\"\"\"\"\"\" }\n"));
  EXPECT_TRUE(read("\xef\xbb\xbftask = \"a\"\n"));
  EXPECT_TRUE(line_of(read("x = \"a\\\n\n\"\ny\xc2\xa1 = 1\n")).starts_with("policy:"));
}

TEST(Toml, DepthAndSizeAreBounded) {
  std::string dotted = "a";
  for (int i = 0; i < 200'000; ++i) dotted += ".a";
  EXPECT_TRUE(line_of(read(dotted + " = 1\n")).contains("a key of more than 64 parts"));
  EXPECT_TRUE(line_of(read("[" + dotted + "]\n")).contains("a key of more than 64 parts"));
  EXPECT_TRUE(line_of(read("x = '''\n'''\n" + dotted + " = 1\n"))
                  .starts_with("policy:3:129: a key of more"));
  const std::string dots(500, '.');
  EXPECT_FALSE(line_of(read("x = \"" + dots + "\" # " + dots + "\n")).contains("parts"));
  EXPECT_TRUE(line_of(read("x = " + std::string(100'000, '[') + "\n")).starts_with("policy:1:"));
  EXPECT_TRUE(line_of(read(std::string(1024 * 1024 + 1, ' '))).contains("larger than 1 MiB"));
}

}  // namespace
}  // namespace policy
