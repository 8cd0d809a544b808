// How the outcome of a run with a planted secret is read.
#include "cli/canary.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cli {
namespace {

const CanaryPlan kPlan = {
    .secret = "canary-abc", .folder = "/tmp/c/in", .outside = "/tmp/c/outside", .port = 4321};

CanarySeen all_well() {
  return {.status = 0,
          .inside =
              "CANARY began\nCERCO_CANARY=ph\nCANARY plain\nCANARY answer /canary/bound "
              "silence\nCANARY answer /elsewhere HTTP/1.1 403 Forbidden\r\nCANARY ended\n",
          .requests = {"GET /canary/bound HTTP/1.1\r\nAuthorization: Bearer canary-abc\r\n\r\n"},
          .journal = R"({"type":"credential.used"})",
          .verified = true};
}

// The names of what is not good.
std::vector<std::string> bad(const CanarySeen& seen) {
  std::vector<std::string> names;
  for (const CanaryFinding& one : canary_findings(kPlan, seen)) {
    if (!one.good) names.push_back(one.name);
  }
  return names;
}

TEST(Canary, NothingIsFoundWhereAllIsWell) {
  EXPECT_EQ(bad(all_well()), std::vector<std::string>{});
}

TEST(Canary, EachHoleIsNamed) {
  struct Row {
    const char* name;
    void (*change)(CanarySeen&);
  };
  const Row rows[] = {
      {"a planted secret is nowhere inside", [](CanarySeen& s) { s.inside += "x canary-abc y"; }},
      {"planted key files are empty inside, the file beside them is there",
       [](CanarySeen& s) { s.inside += "CANARY read /tmp/c/in/.env\n"; }},
      {"the gateway puts the secret where it belongs", [](CanarySeen& s) { s.requests.clear(); }},
      {"and refuses it elsewhere",
       [](CanarySeen& s) {
         s.requests.emplace_back("GET /elsewhere HTTP/1.1\r\nAuthorization: Bearer canary-abc\r\n");
       }},
      {"the metadata address is refused",
       [](CanarySeen& s) { s.inside += "CANARY open 169.254.169.254\n"; }},
      {"a name that no rule has is refused",
       [](CanarySeen& s) { s.inside += "CANARY open cerco-canary.invalid\n"; }},
      {"the journal verifies, tells of the use, and has no secret in it",
       [](CanarySeen& s) { s.journal += "canary-abc"; }},
      {"the journal verifies, tells of the use, and has no secret in it",
       [](CanarySeen& s) { s.verified = false; }},
  };
  for (const Row& row : rows) {
    CanarySeen seen = all_well();
    row.change(seen);
    EXPECT_EQ(bad(seen), std::vector<std::string>{row.name});
  }
}

// A run that did not get to its end shows nothing, and must not look well.
TEST(Canary, WhatWasNotLookedForIsNotSafe) {
  CanarySeen seen;
  seen.status = 125;
  EXPECT_EQ(bad(seen).size(), canary_findings(kPlan, seen).size());
}

TEST(Canary, OthersCredentialsAndRulesForTheHostsNameStayOut) {
  policy::Policy policy;
  policy.egress = {{.name = "mine", .host = "host.cerco.internal", .ports = {9}},
                   {.name = "api", .host = "api.example.com", .ports = {443}}};
  policy.credentials.resize(2);
  const policy::Policy made = canary_policy(policy, kPlan);
  ASSERT_EQ(made.egress.size(), 2U);
  EXPECT_EQ(made.egress[0].name, "api");
  EXPECT_EQ(made.egress[1].ports, std::vector<std::uint16_t>{4321});
  ASSERT_EQ(made.credentials.size(), 1U);
  EXPECT_EQ(made.credentials[0].paths, std::vector<std::string>{"/canary/**"});
  const std::string script = canary_script(kPlan);
  EXPECT_FALSE(script.contains("canary-abc")) << "a command line is no place for it";
  EXPECT_FALSE(script.contains("{port}"));
}

}  // namespace
}  // namespace cli
