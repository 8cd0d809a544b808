// Blast radius, explain() and to_json().
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/testing.h"

namespace {

using plan::Plan;
using plan::testing::credential;
using plan::testing::inspected;
using plan::testing::rule;
using policy::Policy;

Plan made(const Policy& policy) {
  auto plan =
      plan::make(policy, plan::testing::host(), plan::testing::ask(), plan::testing::letters);
  if (!plan) ADD_FAILURE() << plan.error().line();
  return plan ? *plan : Plan{};
}

std::string widest(const std::vector<policy::Egress>& egress,
                   const std::vector<policy::Credential>& credentials) {
  Policy policy;
  policy.egress = egress;
  policy.credentials = credentials;
  return plan::blast_radius(made(policy)).widest;
}

TEST(Widest, IsTheRuleThatCouldCarryMostOut) {
  const auto get = inspected("get", "get.test", {"GET"}, {});
  const auto post = inspected("post", "post.test", {"GET", "POST"}, {"/v1/**"});
  const auto any = inspected("any", "any.test", {}, {"/v1/**"});
  const auto tunnel = rule("tunnel", "tunnel.test", {443});
  const auto one_more = rule("one", "*.one.test", {443});
  const auto deep = rule("deep", "**.deep.test", {443});
  EXPECT_TRUE(widest({get, post}, {}).starts_with("post.test:443"));
  EXPECT_TRUE(widest({any, get}, {}).starts_with("any.test:443"));
  EXPECT_TRUE(widest({tunnel, post}, {}).starts_with("tunnel.test:443"));
  EXPECT_TRUE(widest({tunnel, one_more}, {}).starts_with("*.one.test:443"));
  EXPECT_TRUE(widest({one_more, deep, tunnel}, {}).starts_with("**.deep.test:443"));
  EXPECT_TRUE(widest({}, {}).starts_with("none over the network"));
}

TEST(Widest, IsTheInternetWhereItIsOpen) {
  Policy policy;
  policy.egress = {rule("deep", "**.deep.test", {443})};
  policy.network.fallback = policy::NetworkDefault::open_public;
  const plan::BlastRadius open = plan::blast_radius(made(policy));
  EXPECT_TRUE(open.widest.starts_with("the whole public internet")) << open.widest;
  EXPECT_TRUE(open.reach.front().starts_with("the whole public internet")) << open.reach.front();
  Plan plan = made(policy);
  plan.policy.network = {.mode = policy::NetworkMode::audit};
  const plan::BlastRadius audit = plan::blast_radius(plan);
  EXPECT_TRUE(audit.widest.starts_with("the whole public internet")) << audit.widest;
  EXPECT_TRUE(audit.reach.front().starts_with("NOTHING IS ENFORCED")) << audit.reach.front();
}

TEST(Widest, CredentialsWeighMost) {
  const std::string way = widest({rule("index", "pypi.test", {443}),
                                  inspected("api", "api.test", {"GET", "POST"}, {"/v1/**"})},
                                 {credential("key", "api.test")});
  EXPECT_TRUE(way.starts_with("api.test:443 (rule api)")) << way;
  EXPECT_NE(way.find("credential key"), std::string::npos) << way;
}

// "looked at" stands only where no name and no port of the line can be a tunnel.
TEST(BlastRadius, SaysWhatIsNotLookedInto) {
  using Lines = std::vector<std::string>;
  const auto reach = [](const std::vector<policy::Egress>& egress, const std::string& bound,
                        const std::vector<policy::Deny>& deny) {
    Policy policy;
    policy.egress = egress;
    policy.deny = deny;
    if (!bound.empty()) policy.credentials = {credential("key", bound)};
    Lines lines = plan::blast_radius(made(policy)).reach;
    lines.resize(lines.size() - 2);  // what holds for every policy
    return lines;
  };
  const std::string tunnel = ": any bytes, in a tunnel that is not looked into";
  const std::string looked = ": any method on any path, each request looked at";
  EXPECT_EQ(reach({rule("a", "a.test", {443, 8443})}, "a.test", {}),
            (Lines{"a.test:443" + looked + " (rule a)", "a.test:8443" + tunnel + " (rule a)"}));
  EXPECT_EQ(reach({rule("a", "*.test.example", {443})}, "a.test.example", {}),
            (Lines{"*.test.example:443" + tunnel + " but for some of its names (rule a)"}));
  EXPECT_EQ(reach({rule("a", "*.test.example", {443})}, "**.test.example", {}),
            (Lines{"*.test.example:443" + looked + " (rule a)"}));
  EXPECT_EQ(reach({rule("a", "a.test", {80, 443})}, "", {}),
            (Lines{"a.test:80" + looked + " (rule a)", "a.test:443" + tunnel + " (rule a)"}));
  EXPECT_EQ(
      reach({inspected("a", "a.test", {"GET"}, {})}, "",
            {{.host = "a.test", .cidr = {}, .ports = {}, .methods = {"PUT"}, .paths = {}},
             {.host = "a.test", .cidr = {}, .ports = {443}, .methods = {"GET"}, .paths = {"/x/**"}},
             {.host = {}, .cidr = "9.9.9.9/32", .ports = {}, .methods = {}, .paths = {}}}),
      (Lines{"a.test:443: GET on any path, each request looked at (rule a)", "never PUT at a.test",
             "never GET at a.test:443 on /x/**", "never 9.9.9.9/32"}));
}

TEST(Widest, SaysThatReadsHaveBodiesAndWhichPortIsUnread) {
  EXPECT_EQ(widest({inspected("get", "get.test", {"GET"}, {})}, {}),
            "get.test:443 (rule get): what fits into the lines, headers and bodies of requests "
            "(GET on any path)");
  const std::string mixed =
      widest({rule("a", "*.test.example", {443, 8443})}, {credential("key", "a.test.example")});
  EXPECT_EQ(mixed,
            "*.test.example:443 (rule a): any bytes, unread, to whoever answers there; requests "
            "made with credential key");
}

TEST(BlastRadius, SaysWhatACredentialIsBoundTo) {
  Policy policy = plan::testing::full_policy();
  policy.credentials[0].uses = 100;
  policy.credentials[0].lifetime_ms = 900'000;
  const auto radius = plan::blast_radius(made(policy));
  ASSERT_EQ(radius.credentials.size(), 1U);
  EXPECT_EQ(radius.credentials[0],
            "api: GET, POST at api.test:443 on /v1/**, 100 times, for 15m; inside there is only a "
            "placeholder");
}

TEST(BlastRadius, SaysWhichPathsOfTheHostAreRead) {
  Policy policy;
  policy.filesystem.read_only = {"/srv/data"};
  const auto radius = plan::blast_radius(made(policy));
  EXPECT_NE(std::ranges::find(radius.reads, "/srv/data of this host (filesystem.read_only)"),
            radius.reads.end());
  EXPECT_NE(std::ranges::find(radius.writes, "nothing of this host"), radius.writes.end());
}

TEST(Explain, AnswersTheEightQuestions) {
  static constexpr const char* kReach =
      "If everything inside were hostile, it could reach\n"
      "  api.test:443: GET, POST on /v1/**, each request looked at (rule api)\n"
      "  pypi.test:443: any bytes, in a tunnel that is not looked into (rule index)\n"
      "  10.2.3.4:5432: any bytes, in a tunnel that is not looked into (rule database)\n";
  const std::string text = plan::explain(made(plan::testing::full_policy()));
  for (const char* line : {
           kReach,
           "with these credentials\n  api: ",
           "It could read\n  /usr of this host",
           "It could write\n  /home/agent, /tmp, /var/tmp, /workspace: one disk of 4GiB",
           "The kernel it stands on\n  this host's own",
           "It could use\n  2 processors\n  memory 2GiB, swap 0",
           "How long\n  at most 1h",
           "The widest way out that remains\n  api.test:443",
           "Is the tier proportionate?\n  below the advice: shared-kernel: unreviewed code with "
           "credentials",
           "What is done, in this order\n   1 enter_cgroup\n",
       }) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n--- in ---\n" << text;
  }
}

TEST(Explain, ShowsNothingThatATerminalWouldObey) {  // E64
  Policy policy;
  policy.task = "a\x1b]0;evil\x07";
  policy.egress = {rule("name\x1b[2J", "a.test", {443})};
  EXPECT_EQ(plan::explain(made(policy)).find('\x1b'), std::string::npos);
}

TEST(ToJson, HoldsTheWholePlan) {
  const std::string text = plan::to_json(made(plan::testing::full_policy()));
  for (const char* part : {"\"tier\":\"container\"", "\"blast_radius\":{\"reach\":[",
                           "\"step\":\"pivot_root\"", "\"widest\":\"api.test:443", "\"policy\":{",
                           "\"controller\":\"memory\"", "\"not_accepted\":[\"shared-kernel: "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
