// Golden texts of the report and of the block about refusals.
#include "cli/report_text.h"

#include <gtest/gtest.h>

namespace {

journal::Summary summary() {
  return {.events = 12,
          .head = "ab",
          .alerts = 1,
          .refused = {{.kind = "host",
                       .host = "evil.test",
                       .port = 443,
                       .method = "",
                       .path = "",
                       .count = 3,
                       .rule = "",
                       .fix = "[[egress]]\nhost = \"evil.test\"\n"},
                      {.kind = "path",
                       .host = "api.test",
                       .port = 443,
                       .method = "POST",
                       .path = "/v1/\x1b[2J",
                       .count = 1,
                       .rule = "api",
                       .fix = ""}}};
}

TEST(Report, IsTheContractsJson) {
  plan::Plan plan;
  plan.run = "abcdefgh2345";
  plan.policy.task = "t";
  plan.below_advice = {"shared-kernel: x"};
  plan.policy_sha256 = "cd";
  cli::ReportFacts facts;
  facts.name = "n";
  facts.plan = &plan;
  facts.started = {1767323045, 123'456'789};
  facts.ended = {1767323046, 0};
  facts.outcome.status = 137;
  facts.outcome.ending = {supervisor::EndingKind::killed, 0, "SIGKILL", "operator", "", ""};
  facts.outcome.usage = {
      .wall_ms = 1, .cpu_ms = 2, .memory_peak_bytes = 3, .processes_peak = 4, .written_bytes = 5};
  facts.outcome.stdout_bytes = 6;
  facts.outcome.stderr_bytes = 7;
  facts.outcome.limits_hit = {"memory"};
  facts.outcome.changes = 8;
  facts.outcome.summary = summary();
  EXPECT_EQ(
      cli::report_json(facts),
      R"({"version":1,"cerco":")" + std::string(cli::kVersion) +
          R"(","run":"abcdefgh2345","name":"n","task":"t","tier":"container","below_advice":["shared-kernel: x"],)"
          R"("started":"2026-01-02T03:04:05.123Z","ended":"2026-01-02T03:04:06.000Z","status":137,)"
          R"("ending":{"kind":"killed","code":0,"signal":"SIGKILL","by":"operator","step":"","errno":""},)"
          R"("usage":{"wall_ms":1,"cpu_ms":2,"memory_peak_bytes":3,"processes_peak":4,"written_bytes":5,)"
          R"("stdout_bytes":6,"stderr_bytes":7},"limits_hit":["memory"],"unheld":[],)"
          R"("refused":[{"kind":"host","host":"evil.test","port":443,"method":"","path":"","count":3,"rule":"",)"
          R"("fix":"[[egress]]\nhost = \"evil.test\"\n"},)"
          R"({"kind":"path","host":"api.test","port":443,"method":"POST","path":"/v1/\u001b[2J","count":1,"rule":"api",)"
          R"("fix":null}],"alerts":1,"changes":8,"policy_sha256":"cd","journal":{"events":12,"head":"ab"}})"
          "\n");
}

TEST(Report, IsWholeWithoutAPlan) {
  const std::string json = cli::report_json({});
  EXPECT_NE(json.find(R"("run":"","name":"","task":"default","tier":"container")"),
            std::string::npos);
  EXPECT_NE(json.find(R"("refused":[],"alerts":0)"), std::string::npos);
}

// E64: names come from inside, so nothing of them reaches the terminal as it is.
TEST(RefusalBlock, SaysWhatHowOftenAndWhatWouldAllowIt) {
  EXPECT_EQ(cli::refusal_block(summary()),
            "cerco: refused (the code inside chose these names; allow only what you know):\n"
            "  3x host: evil.test:443\n"
            "    the narrowest rule that would allow it:\n"
            "      [[egress]]\n"
            "      host = \"evil.test\"\n"
            "  1x path: POST api.test:443 /v1/\\x1b[2J\n");
  EXPECT_EQ(cli::refusal_block({}), "");
  EXPECT_TRUE(cli::refusal_block({.refused = {{.kind = "range", .host = "10.1.2.3", .count = 1}}})
                  .contains("  1x range: 10.1.2.3\n  range: the address lies"));
}

}  // namespace
