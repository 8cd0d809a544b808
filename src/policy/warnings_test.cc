// Warnings of what rules say together.
#include <gtest/gtest.h>

#include "policy/testing.h"

namespace policy {
namespace {

std::vector<std::string> warnings_of(const std::string& text) {
  const auto got = testing::read(text);
  EXPECT_TRUE(got) << testing::line_of(got) << text;
  return got ? got->warnings : std::vector<std::string>{};
}

std::string rule(const std::string& lines) {
  return "[[egress]]\n" + lines + "\n";
}

// N49: anyone can get a name under these.
TEST(Warnings, WildcardsOverHosting_N49) {
  for (const char* host : {"*.amazonaws.com", "*.blob.core.windows.net", "*.r2.dev",
                           "*.workers.dev", "*.ngrok.app", "*.trycloudflare.com", "**.pages.dev"}) {
    const auto got = warnings_of(rule(std::string("host = \"") + host + "\""));
    ASSERT_FALSE(got.empty()) << host;
    EXPECT_TRUE(got[0].contains("anyone can get a name")) << got[0];
  }
  EXPECT_TRUE(warnings_of(rule("host = \"*.example.com\"")).empty());
}

// N54: in a tunnel to one tenant nobody sees which tenant is asked.
TEST(Warnings, TunnelsToSharedServers_N54) {
  const auto got = warnings_of(rule("host = \"mine.workers.dev\""));
  ASSERT_EQ(got.size(), 1U);
  EXPECT_TRUE(got[0].contains("share the servers under workers.dev")) << got[0];
  EXPECT_TRUE(got[0].starts_with("policy:2:8: egress[0].host")) << got[0];
  EXPECT_TRUE(warnings_of(rule("host = \"mine.workers.dev\"\nmethods = [\"GET\"]")).empty());
  EXPECT_TRUE(warnings_of(rule("host = \"mine.workers.dev\"\nports = [80]")).empty());
  EXPECT_TRUE(warnings_of(rule("host = \"mine.example.com\"")).empty());
}

// F12: a denial that leaves nothing of a rule is said to.
TEST(Warnings, ADenialThatShadowsARule_F12) {
  const auto shadowed = [](const std::string& deny) {
    const auto got = warnings_of(
        rule("name = \"x\"\nhost = \"a.example.com\"\nports = [443, 8443]") + "[[deny]]\n" + deny);
    return std::ranges::any_of(
        got, [](const std::string& one) { return one.contains("shadows all of rule \"x\""); });
  };
  EXPECT_TRUE(shadowed("host = \"a.example.com\"\n"));
  EXPECT_TRUE(shadowed("host = \"*.example.com\"\n"));
  EXPECT_TRUE(shadowed("host = \"a.example.com\"\nports = [443, 8443]\n"));
  EXPECT_FALSE(shadowed("host = \"a.example.com\"\nports = [443]\n"));
  EXPECT_FALSE(shadowed("host = \"a.example.com\"\npaths = [\"/x\"]\n"));
  EXPECT_FALSE(shadowed("host = \"b.example.com\"\n"));
  const auto all =
      warnings_of(rule("host = \"a.example.com\"") + "[[deny]]\ncidr = \"0.0.0.0/0\"\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].contains("shadows every allow: no IPv4 address is left")) << all[0];
  const auto star = testing::read("[[deny]]\nhost = \"*\"\n");
  EXPECT_TRUE(testing::line_of(star).contains("what no rule allows is denied already"))
      << testing::line_of(star);
  const auto raw = warnings_of(rule("name = \"db\"\ntcp = \"db.example.com:5432\"") +
                               "[[deny]]\nhost = \"**.example.com\"\n");
  ASSERT_EQ(raw.size(), 1U);
  EXPECT_TRUE(raw[0].contains("shadows all of rule \"db\"")) << raw[0];
}

TEST(Warnings, ADenialByNameHoldsNoAddress) {
  const std::string deny = "[[deny]]\nhost = \"b.example.com\"\n";
  for (const std::string& open :
       {rule("cidr = \"10.0.0.0/16\""), rule("tcp = \"93.184.216.34:443\""),
        std::string("[network]\ndefault = \"public\"\n")}) {
    const auto got = warnings_of(open + deny);
    ASSERT_EQ(got.size(), 1U) << open;
    EXPECT_TRUE(got[0].contains("deny its cidr as well")) << got[0];
  }
  EXPECT_TRUE(warnings_of(rule("tcp = \"db.example.com:5432\"") + deny).empty());
  EXPECT_TRUE(
      warnings_of(rule("cidr = \"10.0.0.0/16\"") + "[[deny]]\ncidr = \"10.0.1.0/24\"\n").empty());
}

}  // namespace
}  // namespace policy
