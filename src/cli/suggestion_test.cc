// What `policy suggest` makes of decisions: the narrowest rules, marked, and never more.
#include "cli/suggestion.h"

#include <gtest/gtest.h>

#include "cli/cli_test.h"

namespace {

using cli::Suggestion;

std::string line(std::string_view type, std::string_view verdict, std::string_view fix,
                 std::uint64_t count = 1) {
  base::JsonObject object;
  object.add("v", 1).add("type", type).add("verdict", verdict);
  if (!fix.empty()) object.add("fix", fix);
  if (count != 1) object.add("count", count);
  return object.text();
}

const std::string kHost = "[[egress]]\nhost = \"a.test\"\n";
std::string request(const std::string& method, const std::string& path) {
  return "[[egress]]\nhost = \"api.test\"\nmethods = [\"" + method + "\"]\npaths = [\"" + path +
         "\"]\n";
}

TEST(Suggestion, OneRuleForEachHostAndMethod) {
  Suggestion got;
  got.look(line("dns.decision", "deny", kHost, 3));
  got.look(line("egress.decision", "deny", request("GET", "/a")));
  got.look(line("egress.decision", "audit", request("GET", "/b")));
  got.look(line("egress.decision", "deny", request("GET", "/a")));
  got.look(line("egress.decision", "deny", request("POST", "/c")));
  EXPECT_EQ(got.text(),
            "# UNTRUSTED: the code inside chose every host, method and path below.\n"
            "# Add to the policy what you know to be right, and nothing that you do not.\n"
            "\n# asked for 3 times\n" +
                kHost +
                "\n# asked for 3 times\n[[egress]]\nhost = \"api.test\"\nmethods = "
                "[\"GET\"]\npaths = [\"/a\", \"/b\"]\n"
                "\n# asked for 1 time\n" +
                request("POST", "/c"));
  const auto parsed = policy::parse(got.text(), "suggested", {}, {});
  ASSERT_TRUE(parsed) << parsed.error().line();
  EXPECT_EQ(parsed->policy.egress.size(), 3U);
  EXPECT_NE(got.json().find("\"chosen_by\":\"code inside\""), std::string::npos) << got.json();
}

// What was allowed, malformed, of a range or of a credential leaves nothing; nor does what is no
// rule, or would say more than one.
TEST(Suggestion, NeverRangesCredentialsOrWhatIsNoRule) {
  Suggestion got;
  got.look(line("egress.decision", "allow", kHost));
  got.look(line("egress.decision", "reject", kHost));
  got.look(line("dns.decision", "audit", kHost));
  got.look(line("egress.decision", "deny", ""));
  got.look(line("credential.refused", "deny", kHost));
  got.look(line("egress.decision", "deny",
                kHost + "[network]\ndefault = \"public\"\n[[egress]]\nhost = \"b.test\"\n"));
  got.look(line("egress.decision", "deny", "[[egress]]\ncidr = \"169.254.0.0/16\"\n"));
  got.look(line("egress.decision", "deny", "# x\n[[egress]]\nhost = \"*.com\"\n"));
  got.look("not json");
  EXPECT_TRUE(got.empty()) << got.text();
  EXPECT_EQ(got.text(), "# nothing was refused that a rule could allow\n");
}

TEST(Suggestion, TheHostsOwnNameHasItsPorts) {
  Suggestion got;
  const std::string own = "[[egress]]\nhost = \"host.cerco.internal\"\nports = [443]\n";
  got.look(line("egress.decision", "deny", own));
  EXPECT_NE(got.text().find(own), std::string::npos) << got.text();
}

// A name cannot break out of its line: what is printed was parsed and written anew.
TEST(Suggestion, TextOfTheFixIsNotPrinted) {
  Suggestion got;
  got.look(line("egress.decision", "deny", "# evil\n" + kHost + "# [network]\n"));
  EXPECT_EQ(got.text().find("evil"), std::string::npos) << got.text();
  EXPECT_NE(got.text().find(kHost), std::string::npos);
}

// A tunnel beside rules that look inside would be no policy.
TEST(Suggestion, TheNarrowerRuleStays) {
  Suggestion got;
  got.look(line("egress.decision", "deny", "[[egress]]\nhost = \"api.test\"\n"));
  got.look(line("egress.decision", "deny", request("GET", "/a")));
  const auto parsed = policy::parse(got.text(), "suggested", {}, {});
  ASSERT_TRUE(parsed) << parsed.error().line();
  ASSERT_EQ(parsed->policy.egress.size(), 1U);
  EXPECT_TRUE(parsed->policy.egress[0].inspects);
}

TEST(Suggestion, IsBounded) {
  Suggestion got;
  for (int i = 0; i < 600; ++i)
    got.look(
        line("dns.decision", "deny", "[[egress]]\nhost = \"h" + std::to_string(i) + ".test\"\n"));
  for (int i = 0; i < 300; ++i)
    got.look(line("egress.decision", "deny", "[[egress]]\nhost = \"h1.test\"\n"));
  EXPECT_NE(got.text().find("# and 100 more, to other places"), std::string::npos);
  Suggestion paths;
  for (int i = 0; i < 300; ++i)
    paths.look(line("egress.decision", "deny", request("GET", "/" + std::to_string(i))));
  EXPECT_NE(paths.text().find("with more paths than are listed"), std::string::npos);
}

}  // namespace
