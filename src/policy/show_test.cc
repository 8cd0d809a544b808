// The printed forms parse to the same policy.
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

// The texts that other tests accept, as policies whose forms must agree.
std::vector<std::string> good_policies() {
  std::vector<std::string> out = {"", cases::read("decide.toml")};
  for (const auto& row : cases::rows("policy_keys.txt")) {
    if (!row[1].empty()) out.push_back(policy_with(row[0], row[1]));
  }
  out.push_back(
      "[environment]\nset = { A = \"a \\\"b\\\" \\\\ \\n \\u0007 \\u007f é\", B = \"\" }\n");
  return out;
}

TEST(Showing, TomlParsesToTheSamePolicy) {
  for (const std::string& text : good_policies()) {
    const auto first = parse(text, "policy", {}, {1500, 3ULL << 30});
    ASSERT_TRUE(first) << text << line_of(first);
    const std::string shown = show(*first);
    const auto second = read(shown);
    ASSERT_TRUE(second) << shown << line_of(second);
    EXPECT_EQ(second->policy, first->policy) << shown;
  }
}

TEST(Showing, JsonParsesToTheSamePolicy) {
  for (const std::string& text : good_policies()) {
    const auto first = parse(text, "policy", {}, {1500, 3ULL << 30});
    ASSERT_TRUE(first);
    const auto second = read(to_json(first->policy));
    ASSERT_TRUE(second) << to_json(first->policy) << line_of(second);
    EXPECT_EQ(second->policy, first->policy);
    EXPECT_EQ(to_json(second->policy), to_json(first->policy));
  }
}

TEST(Showing, EveryValueSaysWhereItIsFrom) {
  const Override changes[] = {{OverrideKind::set, "limits.memory=1GiB"}};
  const auto effective = read("[limits]\nwall = \"5s\"\n", changes);
  ASSERT_TRUE(effective);
  const std::string shown = show(*effective);
  EXPECT_TRUE(shown.contains("wall = \"5s\"  # policy:2:8\n")) << shown;
  EXPECT_TRUE(shown.contains("memory = \"1GiB\"  # --set limits.memory\n"));
  EXPECT_TRUE(shown.contains("disk = \"4GiB\"  # default\n"));
  for (std::string_view line : base::split(shown, '\n')) {
    if (!line.empty() && line[0] != '[') EXPECT_TRUE(line.contains("  # ")) << line;
  }
}

TEST(Showing, SizesAndDurationsSayExactlyTheSame) {
  EXPECT_EQ(size_text(512ULL << 20), "512MiB");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(1ULL << 40), "1TiB");
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(kUnlimited), "unlimited");
  EXPECT_EQ(duration_text(90'000), "90s");
  EXPECT_EQ(duration_text(3'600'000), "1h");
  EXPECT_EQ(duration_text(1'500), "1500ms");
  EXPECT_EQ(duration_text(86'400'000), "1d");
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(kUnlimited), "unlimited");
}

}  // namespace
}  // namespace policy
