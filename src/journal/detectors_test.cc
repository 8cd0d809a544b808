// Tests of the detectors, the refusals of a report, and the task's memory.
#include "journal/detectors.h"

#include "journal/fixture.h"

namespace journal {
namespace {

using namespace fixture;

constexpr os::Instant kNow{1000, 0};

std::vector<Finding> look(Detectors& detectors, std::string_view type, const std::string& members,
                          const os::Instant& now) {
  const auto parsed = Members::parse(members);
  EXPECT_TRUE(parsed) << members;
  return detectors.look({type, *parsed}, now);
}

struct Row {
  const char* type;
  const char* members;
  const char* finding;  // "detector severity action", "" for none
};

TEST(Detectors, Table) {
  const std::vector<Row> table = {
      {"egress.decision",
       R"("verdict":"deny","kind":"range","reason":"metadata","address":"169.254.169.254","port":80)",
       "blocked_range high kill"},
      {"egress.decision",
       R"("verdict":"deny","kind":"range","reason":"private","address":"10.0.0.1","port":22)",
       "blocked_range medium kill"},
      {"egress.decision",
       R"("verdict":"deny","kind":"host","reason":"host","host":"x.test","port":443)", ""},
      {"egress.decision", R"("verdict":"allow","host":"new.test","port":443)",
       "new_destination low alert"},
      {"egress.decision", R"("verdict":"audit","host":"new.test","port":443)",
       "new_destination low alert"},
      {"egress.decision", R"("verdict":"allow","host":"known.test","port":443)", ""},
      {"egress.decision", R"("verdict":"allow","host":"known.test","port":8443)",
       "new_destination low alert"},
      {"egress.decision", R"("verdict":"allow","host":"known.test","port":443,"count":1001)",
       "request_spike medium alert"},
      {"egress.decision",
       R"("verdict":"deny","kind":"port","host":"known.test","port":22,"count":1001)",
       "request_spike medium alert"},
      {"egress.decision", R"("verdict":"allow","host":"known.test","port":443,"count":1000)", ""},
      {"credential.refused", R"("credential":"api","reason":"host","host":"evil.test","port":443)",
       "placeholder_misuse high freeze"},
      {"credential.refused",
       R"("credential":"api","reason":"expired","host":"known.test","port":443)", ""},
      {"credential.refused",
       R"("credential":"api","reason":"placeholder_in_body","host":"known.test","port":443)",
       "placeholder_in_body low note"},
      {"egress.ended", R"("placeholder_in_body":"api","host":"known.test","port":443)",
       "placeholder_in_body low note"},
      {"credential.refused",
       R"("credential":"canary:aws","reason":"canary","where":"url","host":"known.test","port":443)",
       "canary critical alert"},
      {"credential.used", R"("credential":"api","host":"known.test","port":443)", ""},
      {"dns.decision", R"("verdict":"deny","host":"10.0.0.1.nip.test")", ""},
      {"exec", R"("argv":["range"])", ""},
  };
  for (const Row& row : table) {
    Detectors detectors(
        {{"blocked_range", "kill"}, {"placeholder_misuse", "freeze"}, {"new_destination", "alert"}},
        TaskMemory("v 1\nd known.test:443\n"));
    std::string found;
    for (const Finding& finding : look(detectors, row.type, row.members, kNow)) {
      found += (found.empty() ? "" : ", ") + finding.detector + " " + finding.severity + " " +
               finding.action;
    }
    EXPECT_EQ(found, row.finding) << row.type << " " << row.members;
    // The same again is the same subject; a thousand more are a spike.
    if (std::string_view(row.members).find("count") != std::string_view::npos) continue;
    EXPECT_TRUE(look(detectors, row.type, row.members, kNow).empty()) << row.members;
  }
}

TEST(Detectors, TheFirstRunOfATaskIsNotAlarmedAboutItsDestinations) {
  Detectors detectors({{"new_destination", "kill"}}, TaskMemory(""));
  const auto findings =
      look(detectors, "egress.decision", R"("verdict":"allow","host":"a.test","port":443)", kNow);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].severity, "informational");
  EXPECT_EQ(findings[0].action, "note");
  EXPECT_EQ(detectors.memory().take_new_text(), "v 1\nd a.test:443\n");
  EXPECT_EQ(detectors.memory().take_new_text(), "");
}

TEST(Detectors, AScanNamesSomeAndThenSaysThereAreMore) {
  Detectors detectors({}, TaskMemory("v 1\n"));
  std::size_t findings = 0;
  std::string last;
  for (int i = 0; i < 5000; ++i) {
    const std::string members =
        R"("verdict":"deny","kind":"range","reason":"private","address":"10.0.)" +
        std::to_string(i / 250) + "." + std::to_string(i % 250) + R"(","port":22)";
    for (const Finding& finding : look(detectors, "egress.decision", members, {1000 + i, 0})) {
      if (finding.detector != "blocked_range") continue;
      ++findings;
      last = finding.text;
    }
  }
  EXPECT_EQ(findings, Detectors::kMostSubjects + 1);
  EXPECT_TRUE(last.starts_with("more than 32; further ones are not named.")) << last;
}

TEST(Detectors, ASpikeIsMeasuredAgainstWhatIsUsual) {
  const auto send = [](Detectors& detectors, int count, std::int64_t second) {
    std::string found;
    for (const Finding& finding :
         look(detectors, "egress.decision",
              R"("verdict":"deny","host":"a","port":1,"count":)" + std::to_string(count),
              {second, 0})) {
      if (finding.detector == "request_spike") found = finding.text;
    }
    return found;
  };
  // Three earlier windows of 20 requests each: the floor, 100, does not make 200 a spike, 201 is.
  Detectors usual({}, TaskMemory("v 1\nw 3 60\n"));
  EXPECT_EQ(send(usual, 200, 1000), "");
  EXPECT_EQ(send(usual, 1, 1000), "201 requests within 10 s; about 20 is usual");
  // Few requests are none, however few are usual.
  Detectors quiet({}, TaskMemory("v 1\nw 100 100\n"));
  EXPECT_EQ(send(quiet, 100, 1000), "");
  EXPECT_NE(send(quiet, 1, 1000), "");
  // A new window starts anew.
  Detectors slow({}, TaskMemory("v 1\nw 100 100\n"));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(send(slow, 60, 1000 + 10 * i), "");
  // Its own windows count as well, and end up in the memory.
  slow.finish();
  EXPECT_EQ(slow.memory().take_new_text(), "w 100 6000\n");
}

TEST(TaskMemory, PassesOverWhatItDoesNotKnow) {
  TaskMemory memory("v 1\nd a:1\nx\n\nd\nd b c\nw 1\nw x y\nw 2 10\nw 1 5\nd a:1");
  EXPECT_FALSE(memory.first_run());
  EXPECT_TRUE(memory.knows("a:1"));
  EXPECT_FALSE(memory.knows("b"));
  EXPECT_EQ(memory.windows(), 3U);
  EXPECT_EQ(memory.requests(), 15U);
  memory.learn_destination("a:1");
  memory.learn_destination("with space:1");
  memory.learn_destination("with\nnewline:1");
  EXPECT_EQ(memory.take_new_text(), "");
  for (int i = 0; i < 5000; ++i) memory.learn_destination("h" + std::to_string(i) + ":1");
  TaskMemory read(memory.take_new_text());
  EXPECT_FALSE(read.knows("h4999:1"));
}

TEST(TaskMemory, IsKeptBetweenTheRunsOfOneTaskOnly) {
  const State state;
  const StillClock clock;
  const auto alerts = [&](const std::string& run, const std::string& task) {
    auto recorder = start(state, run, clock, {{"new_destination", "alert"}}, kSeed, task);
    Producer gateway("gateway");
    EXPECT_TRUE(recorder->take(
        gateway, draft("egress.decision", R"("verdict":"allow","host":"a.test","port":443)")));
    EXPECT_TRUE(recorder->take(gateway, draft("egress.decision", R"("verdict":"allow","host":")" +
                                                                     run + R"(","port":1)")));
    return recorder->finish("end")->alerts;
  };
  EXPECT_EQ(alerts("aaaaaaaaaaaa", "one"), 0U);
  EXPECT_EQ(alerts("bbbbbbbbbbbb", "one"), 1U);
  EXPECT_EQ(alerts("cccccccccccc", "../two"), 0U);
}

std::vector<Refusal> refused(const std::vector<std::string>& decisions) {
  Refusals refusals;
  for (const std::string& members : decisions) {
    const auto parsed = Members::parse(members);
    EXPECT_TRUE(parsed) << members;
    refusals.look({"egress.decision", *parsed});
  }
  return refusals.all();
}

// F108: what a report needs to be acted on.
TEST(Refusals, CountWhatIsTheSameAndKeepWhatIsDifferent) {
  const auto all = refused({
      R"("verdict":"deny","kind":"path","host":"a.test","port":443,"method":"GET","path":"/x","rule":"r","fix":"[[egress]]")",
      R"("verdict":"deny","kind":"path","host":"a.test","port":443,"method":"GET","path":"/x","rule":"r","fix":"[[egress]]")",
      R"("verdict":"deny","kind":"path","host":"a.test","port":443,"method":"GET","path":"/y","rule":"r","count":5)",
      R"("verdict":"allow","host":"a.test","port":443)",
      R"("verdict":"audit","kind":"host","host":"a.test","port":443)",
      R"("verdict":"reject","host":"a.test","port":80)",
      R"("verdict":"deny","kind":"range","address":"10.0.0.1","port":22)",
  });
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].count, 2U);
  EXPECT_EQ(all[0].path, "/x");
  EXPECT_EQ(all[0].fix, "[[egress]]");
  EXPECT_EQ(all[0].rule, "r");
  EXPECT_EQ(all[0].method, "GET");
  EXPECT_EQ(all[1].count, 5U);
  EXPECT_EQ(all[2].kind, "protocol");
  EXPECT_EQ(all[3].kind, "range");
  EXPECT_EQ(all[3].host, "10.0.0.1");
}

TEST(Refusals, ANameThatIsNotAllowedIsARefusal) {
  Refusals refusals;
  const auto denied =
      Members::parse(R"("verdict":"deny","host":"evil.test","reason":"host","fix":"f")");
  const auto allowed = Members::parse(R"("verdict":"allow","host":"good.test")");
  refusals.look({"dns.decision", *denied});
  refusals.look({"dns.decision", *allowed});
  ASSERT_EQ(refusals.all().size(), 1U);
  EXPECT_EQ(refusals.all()[0].kind, "host");
  EXPECT_EQ(refusals.all()[0].host, "evil.test");
  EXPECT_EQ(refusals.all()[0].port, 0U);
}

TEST(Refusals, AreBoundedWhateverTheCodeInsideDoes) {
  std::vector<std::string> many;
  for (int i = 0; i < 700; ++i) {
    many.push_back(R"("verdict":"deny","kind":"host","host":"h)" + std::to_string(i) +
                   R"(","port":1,"path":")" + std::string(5000, 'p') + '"');
  }
  const auto all = refused(many);
  EXPECT_LE(all.size(), Refusals::kMost + 1);
  EXPECT_EQ(all.back().kind, "more");
  std::uint64_t sum = 0;
  for (const Refusal& one : all) sum += one.count;
  EXPECT_EQ(sum, 700U);
  EXPECT_LT(base::encode(FromJournal(Summary{1, zeros(), 0, all})).size(), ipc::kMaxMessage);
}

}  // namespace
}  // namespace journal
