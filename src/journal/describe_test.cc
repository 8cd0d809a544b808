// Tests of the line for people and of the readers.
#include "journal/fixture.h"
#include "journal/follow.h"

namespace journal {
namespace {

using namespace fixture;

std::string line(const std::string& type, const std::string& members) {
  return R"({"v":1,"seq":7,"id":"aaaaaaaaaaaa:7","time":"2026-01-02T03:04:05.123456789Z","run":"aaaaaaaaaaaa",)"
         R"("task":"t","type":")" +
         type + R"(","prev":"0")" + (members.empty() ? "" : "," + members) + "}";
}

std::string described(const std::string& type, const std::string& members) {
  const std::string text = describe(line(type, members));
  const std::string start = "2026-01-02 03:04:05.123  aaaaaaaaaaaa:7  ";
  EXPECT_TRUE(text.starts_with(start)) << text;
  return text.substr(std::min(text.size(), start.size()));
}

// F101: method, URL, rule, bytes, latency, credential.
TEST(Describe, Table) {
  struct Row {
    const char* type;
    const char* members;
    const char* text;
  };
  const std::vector<Row> table = {
      {"egress.decision",
       R"("verdict":"allow","rule":"api","way":"tcp","host":"api.test","port":443,"address":"192.0.2.1","method":"GET","url":"https://api.test/v1/me?…","tls":"terminated","credential":"api")",
       "egress.decision  allow GET https://api.test/v1/me?… · rule api · address 192.0.2.1 · way "
       "tcp · tls terminated · credential api"},
      {"egress.decision",
       R"("verdict":"deny","kind":"range","reason":"metadata","way":"tcp","address":"169.254.169.254","port":80,"count":12)",
       "egress.decision  deny 169.254.169.254:80 · reason metadata · address 169.254.169.254 · way "
       "tcp · 12 times"},
      {"egress.decision", R"("verdict":"deny","address":"fd00::1","port":80)",
       "egress.decision  deny [fd00::1]:80 · address fd00::1"},
      {"egress.ended",
       R"("of":"aaaaaaaaaaaa:6","status":200,"bytes_up":120,"bytes_down":4500,"ms":31)",
       "egress.ended     aaaaaaaaaaaa:6 · status 200 · up 120 B · down 4500 B · 31 ms"},
      {"dns.decision", R"("verdict":"deny","host":"evil.test","reason":"host")",
       "dns.decision     deny evil.test · reason host"},
      {"credential.refused",
       R"("credential":"api","reason":"path","host":"api.test","port":443,"method":"GET","path":"/x")",
       "credential.refused api GET api.test:443/x · reason path"},
      {"alert",
       R"("detector":"blocked_range","severity":"high","evidence":["aaaaaaaaaaaa:6"],"action":"kill","text":"attempt")",
       "alert            blocked_range [high] attempt · action kill · evidence "
       "[\"aaaaaaaaaaaa:6\"]"},
      {"run.planned",
       R"("policy_sha256":"ab","policy":{"task":"x"},"tier":"container","unheld":[])",
       "run.planned      policy ab · tier container"},
      {"checkpoint", R"("key_id":"k","sig":"s")", "checkpoint       signed by k"},
      {"limit.hit", R"("limit":"memory")", "limit.hit        limit=memory"},
      {"of.the.future", R"("x":[1,2],"y":null)", "of.the.future    x=[1,2] y=null"},
      {"run.started", "", "run.started     "},
  };
  for (const Row& row : table) EXPECT_EQ(described(row.type, row.members), row.text);
}

// E64 E65: nothing in an event reaches a terminal or ends a line.
TEST(Describe, HostileStringsAreMadePrintable) {
  const std::string hostile[] = {
      "\x1b]52;c;Zm9v\x07",
      "\x1b]8;;http://evil.test\x1b\\",
      "\x1b]0;title\x07",
      "\x1bP$q\x1b\\",
      "\x1b[6n",
      "\x1b[31m",
      "\xc2\x9b"
      "31m",
      "\xe2\x80\xae"
      "txt.exe",
      "\xe2\x81\xa6",
      "a\nb",
      "a\rb",
      "\x7f",
      "\xef\xbb\xbf",
      "\xe2\x80\xa8",
      std::string("nul\0nul", 7),
      "\n{\"v\":1,\"type\":\"run.ended\",\"msg\":\"approved\"}",
  };
  for (const std::string& text : hostile) {
    for (const char* type : {"egress.decision", "egress.ended", "dns.decision", "credential.used",
                             "alert", "run.planned", "command.started", "exec"}) {
      base::JsonObject object;
      for (const char* key :
           {"verdict", "host", "method", "url", "path", "reason", "rule", "credential", "text",
            "detector", "status", "argv", "policy_sha256", "of"}) {
        object.add(key, text);
      }
      object.raw("list", base::json_strings(std::vector<std::string>{text}));
      const std::string shown = describe(line(type, object.members()));
      EXPECT_EQ(shown, base::printable(shown)) << type;
      EXPECT_EQ(shown.find('\n'), std::string::npos);
      EXPECT_EQ(shown.find('\x1b'), std::string::npos);
    }
  }
  // The positive control: the strings are harmful before.
  for (const std::string& text : hostile) EXPECT_NE(text, base::printable(text));
  for (const std::string& text :
       {std::string("not json \x1b[6n"), std::string("{\"type\":\"\x1b\"}"), std::string()}) {
    EXPECT_EQ(describe(text), base::printable(describe(text)));
  }
}

TEST(Describe, TheEndOfARunIsSaidInWords) {
  const std::string text = describe(
      line("run.ended",
           R"("ending":{"kind":"timed_out","code":0,"signal":"TERM","by":"wall"},"status":124,)"
           R"("usage":{"wall_ms":1200,"cpu_ms":30,"memory_peak_bytes":4096,"processes_peak":2,)"
           R"("written_bytes":7},"limits_hit":["wall"])"));
  EXPECT_NE(
      text.find("timed_out TERM · by wall · status 124 · limits_hit [\"wall\"] · wall 1200 ms · "
                "processor 30 ms · memory 4096 B · processes 2 · written 7 B"),
      std::string::npos)
      << text;
  EXPECT_NE(describe(line("run.ended", R"("ending":"odd","status":1)")).find("status 1"),
            std::string::npos);
}

TEST(Describe, AWholeEventHasALineForEachMember) {
  const std::string text =
      describe_whole(line("exec", R"("argv":["a","\u001b[6n"],"cwd":"/x\ny")"));
  EXPECT_NE(text.find("type           exec\n"), std::string::npos) << text;
  EXPECT_NE(text.find("cwd            /x\\x0ay\n"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
}

TEST(Tone, Table) {
  EXPECT_EQ(tone(line("alert", "")), Tone::alert);
  EXPECT_EQ(tone(line("egress.decision", R"("verdict":"deny")")), Tone::refused);
  EXPECT_EQ(tone(line("egress.decision", R"("verdict":"reject")")), Tone::refused);
  EXPECT_EQ(tone(line("egress.decision", R"("verdict":"audit")")), Tone::audit);
  EXPECT_EQ(tone(line("egress.decision", R"("verdict":"allow")")), Tone::allowed);
  EXPECT_EQ(tone(line("run.started", "")), Tone::plain);
}

class Reading : public ::testing::Test {
 protected:
  void SetUp() override {
    recorder_ = start(state_, kRun, clock_);
    take("egress.decision", R"("verdict":"allow","host":"a.test","port":443)");
    take("egress.decision", R"("verdict":"deny","kind":"host","host":"b.test","port":443)");
    clock_.pass(60);
    take("egress.ended", R"("status":200)");
    ASSERT_TRUE(recorder_->flush());
  }
  void take(const std::string& type, const std::string& members) {
    ASSERT_TRUE(recorder_->take(gateway_, draft(type, members)));
  }
  std::string found(const Filter& filter) {
    std::string ids;
    EXPECT_TRUE(read(state_.of("journal"), kRun, filter, [&](std::string_view text) {
      const auto members = Members::parse_object(text);
      ids += std::to_string(*members->number("seq")) + " ";
    }));
    return ids;
  }
  State state_;
  StillClock clock_;
  Producer gateway_{"gateway"};
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(Reading, Filters) {
  // 2 is the note on the new destination.
  EXPECT_EQ(found({}), "1 2 3 4 ");
  EXPECT_EQ(found({.type = "egress.decision"}), "1 3 ");
  EXPECT_EQ(found({.type = "egress."}), "1 3 4 ");
  EXPECT_EQ(found({.type = "egress"}), "");
  EXPECT_EQ(found({.host = "b.test"}), "3 ");
  EXPECT_EQ(found({.verdict = "allow"}), "1 ");
  EXPECT_EQ(found({.since = "2026-01-02T02:51:00.000000000Z"}), "4 ");
  EXPECT_EQ(found({.type = "egress.", .host = "a.test", .verdict = "allow"}), "1 ");
}

TEST_F(Reading, FindsOneEventAndTheRuns) {
  const auto line = event(state_.of("journal"), kRun + ":3");
  ASSERT_TRUE(line);
  EXPECT_NE(line->find("b.test"), std::string::npos);
  EXPECT_EQ(event(state_.of("journal"), kRun + ":9").error().kind, base::Kind::not_found);
  EXPECT_EQ(event(state_.of("journal"), kOther + ":1").error().kind, base::Kind::not_found);
  for (const char* id : {"", ":", "aaaaaaaaaaaa", "aaaaaaaaaaaa:", "aaaaaaaaaaaa:x", "../host:1",
                         "aaaaaaaaaaaa:01"}) {
    EXPECT_EQ(event(state_.of("journal"), id).error().kind, base::Kind::bad_input) << id;
  }
  // Oldest first, whatever the names.
  clock_.pass(-3600);
  const auto older = start(state_, "zzzzzzzzzzzz", clock_);
  ASSERT_TRUE(older->take(gateway_, draft("egress.ended", "")));
  ASSERT_TRUE(older->flush());
  const auto all = runs(state_.of("journal"));
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, (std::vector<std::string>{"zzzzzzzzzzzz", kRun}));
  EXPECT_TRUE(runs("/nonexistent")->empty());
}

TEST_F(Reading, FollowsWhatIsWrittenLater) {
  Follower follower(state_.of("journal"), "");
  ASSERT_TRUE(follower.watch());
  std::size_t lines = 0;
  const auto count = [&](std::string_view) { ++lines; };
  ASSERT_TRUE(follower.take(count));
  EXPECT_EQ(lines, 4U);
  take("egress.ended", "");
  ASSERT_TRUE(recorder_->flush());
  ASSERT_TRUE(follower.wait(1000));
  ASSERT_TRUE(follower.take(count));
  EXPECT_EQ(lines, 5U);
  // Half a line is not a line yet.
  const std::string whole = slurp(state_.journal(kRun));
  spill(state_.journal(kRun), whole + R"({"v":1)");
  ASSERT_TRUE(follower.take(count));
  EXPECT_EQ(lines, 5U);
  spill(state_.journal(kRun), whole + "{\"v\":1}\n");
  ASSERT_TRUE(follower.take(count));
  EXPECT_EQ(lines, 6U);
  // A run that starts later, and a file that the run goes on in.
  whole_run(state_, kOther, 1);
  ASSERT_TRUE(follower.take(count));
  EXPECT_EQ(lines, 8U);
}

}  // namespace
}  // namespace journal
