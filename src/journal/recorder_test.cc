// Tests of what the recorder takes, drops and tells, with a clock that the test moves.
#include "journal/recorder.h"

#include "journal/fixture.h"

namespace journal {
namespace {

using namespace fixture;

const char* const kName = R"("verdict":"deny","kind":"host","host":"a.test")";
const char* const kAllow = R"("verdict":"allow","host":"a.test","port":1)";

std::size_t count_of(const State& state, const std::string& text) {
  std::size_t count = 0;
  for (const std::string& line : lines_of(state.journal(kRun))) {
    if (line.find(text) != std::string::npos) ++count;
  }
  return count;
}

TEST(MayWrite, Table) {
  struct Row {
    const char* who;
    const char* type;
    bool may;
  };
  const std::vector<Row> table = {
      {"gateway", "egress.decision", true},
      {"gateway", "egress.ended", true},
      {"gateway", "dns.decision", true},
      {"gateway", "credential.used", true},
      {"gateway", "credential.issued", false},
      {"gateway", "run.ended", false},
      {"gateway", "checkpoint", false},
      {"gateway", "events.dropped", false},
      {"gateway", "containment", false},
      {"broker", "credential.issued", true},
      {"broker", "credential.revoked", true},
      {"broker", "egress.decision", false},
      {"broker", "alert", false},
      {"supervisor", "run.planned", true},
      {"supervisor", "containment", true},
      {"supervisor", "checkpoint", false},
      {"supervisor", "journal.pruned", false},
      {"supervisor", "no.such", false},
      {"other", "egress.decision", false},
      {"", "exec", false},
  };
  for (const Row& row : table)
    EXPECT_EQ(may_write(row.who, row.type), row.may) << row.who << " " << row.type;
}

TEST(Admit, TheGatewayRaisesOnlyItsOwnAlert) {
  EXPECT_TRUE(admit("gateway", draft("alert", R"("detector":"dns_names","action":"alert")")));
  EXPECT_FALSE(admit("gateway", draft("alert", R"("detector":"blocked_range","action":"kill")")));
  EXPECT_FALSE(admit("gateway", draft("alert", "")));
}

TEST(Admit, LengthsAreBoundedByTheProducer) {
  const std::string big = R"("a":")" + std::string(kMaxMembers - 6, 'x') + '"';
  ASSERT_EQ(big.size(), kMaxMembers);
  EXPECT_TRUE(admit("gateway", draft("egress.ended", big)));
  EXPECT_FALSE(admit("gateway", draft("egress.ended", big + " ")));
  EXPECT_TRUE(admit("supervisor", draft("run.planned", big + R"(,"b":1)")));
  std::string many;
  for (int i = 0; i < 55; ++i) many += (i > 0 ? ",\"a" : "\"a") + std::to_string(i) + "\":1";
  EXPECT_TRUE(admit("gateway", draft("egress.ended", many)));
  EXPECT_FALSE(admit("gateway", draft("egress.ended", many + ",\"b\":1")));
  const Draft twice{"egress.ended", R"("of":"x")", 0, 3};
  EXPECT_FALSE(admit("gateway", twice));
}

// F107: a flood costs its own events, is told exactly, and never costs what was allowed.
TEST(Recorder, AFloodIsCountedAndAllowedEventsStay) {
  const State state;
  StillClock clock;
  auto recorder = start(state, kRun, clock, {}, kSeed, "t");
  Producer gateway("gateway");
  const std::uint64_t flood = Bucket::kBurst + 5000;
  for (std::uint64_t i = 0; i < flood; ++i)
    ASSERT_TRUE(recorder->take(gateway, draft("dns.decision", kName)));
  // What a detector points at is kept as well.
  ASSERT_TRUE(recorder->take(
      gateway,
      draft(
          "egress.decision",
          R"("verdict":"deny","kind":"range","reason":"metadata","address":"169.254.169.254","port":80)")));
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(recorder->take(gateway, draft("egress.decision", kAllow)));
  ASSERT_TRUE(recorder->report_dropped(gateway, Recorder::When::due));
  EXPECT_TRUE(gateway.has_dropped());  // not within the same second
  clock.pass(1);
  ASSERT_TRUE(recorder->report_dropped(gateway, Recorder::When::due));
  EXPECT_FALSE(gateway.has_dropped());
  // A second fills the bucket by 2000.
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(recorder->take(gateway, draft("dns.decision", kName)));
  ASSERT_TRUE(recorder->report_dropped(gateway, Recorder::When::now));
  const auto summary = recorder->finish("end");
  ASSERT_TRUE(summary);
  // One more than the bucket held: the one that the alert about the range names.
  EXPECT_EQ(count_of(state, "169.254.169.254"), 2U);
  EXPECT_EQ(count_of(state, R"("verdict":"deny")"), Bucket::kBurst + Bucket::kPerSecond + 1);
  EXPECT_EQ(count_of(state, R"("verdict":"allow")"), 100U);
  EXPECT_EQ(count_of(state, R"("counts":{"dns.decision":5000})"), 1U);
  EXPECT_EQ(count_of(state, R"("counts":{"dns.decision":1000})"), 1U);
  ASSERT_EQ(summary->refused.size(), 2U);
  EXPECT_EQ(summary->refused[0].count,
            flood + 3000);  // refusals are counted whether written or not
}

// Refused requests whose paths differ cost a few lines and one that counts the rest.
TEST(Recorder, RepeatedRefusalsAreFolded) {
  const State state;
  StillClock clock;
  auto recorder = start(state, kRun, clock, {}, kSeed, "t");
  Producer gateway("gateway");
  constexpr std::uint64_t kRequests = 900;
  const auto refused = [](std::uint64_t i, int port) {
    return draft("egress.decision",
                 R"("verdict":"deny","kind":"path","reason":"path","host":"a.test","port":)" +
                     std::to_string(port) + R"(,"path":"/)" + std::to_string(i) +
                     std::string(15'900, 'a') + '"');
  };
  for (std::uint64_t i = 0; i < kRequests; ++i)
    ASSERT_TRUE(recorder->take(gateway, refused(i, 80)));
  ASSERT_TRUE(recorder->take(gateway, refused(0, 81)));  // of another kind
  EXPECT_TRUE(gateway.owes());
  EXPECT_FALSE(gateway.has_dropped());
  clock.pass(1);
  ASSERT_TRUE(recorder->report_dropped(gateway, Recorder::When::due));
  EXPECT_FALSE(gateway.owes());
  clock.pass(Folds::kRefillSeconds);  // one more is told
  ASSERT_TRUE(recorder->take(gateway, refused(1, 80)));
  EXPECT_FALSE(gateway.owes());
  const auto summary = recorder->finish("end");
  ASSERT_TRUE(summary);
  EXPECT_EQ(count_of(state, R"("port":80,"path":)"), Folds::kTold + 1);
  EXPECT_EQ(count_of(state, R"("port":81,"path":)"), 1U);
  EXPECT_EQ(count_of(state, R"("reason":"path","host":"a.test","port":80,"count":)" +
                                std::to_string(kRequests - Folds::kTold)),
            1U);
  std::uint64_t counted = 0;
  for (const Refusal& refusal : summary->refused) counted += refusal.count;
  EXPECT_EQ(counted, kRequests + 2);
  EXPECT_LT(slurp(state.journal(kRun)).size(), 200'000U);
}

// However many kinds there are: past a number of them they are one.
TEST(Recorder, FoldsAreBounded) {
  const State state;
  const StillClock clock;
  auto recorder = start(state, kRun, clock, {}, kSeed, "t");
  Producer gateway("gateway");
  const auto refused = [](std::size_t i) {
    return draft("egress.decision", R"("verdict":"deny","kind":"host","host":"h)" +
                                        std::to_string(i) + R"(.test","port":443)");
  };
  constexpr std::size_t kHosts = Folds::kMostKinds + 500;
  for (std::size_t i = 0; i < kHosts; ++i) ASSERT_TRUE(recorder->take(gateway, refused(i)));
  ASSERT_TRUE(recorder->report_dropped(gateway, Recorder::When::now));
  ASSERT_TRUE(recorder->finish("end"));
  // One stands by itself: the one that the alert about the spike names.
  EXPECT_EQ(count_of(state, R"x("host":"(other places)","count":)x" +
                                std::to_string(500 - 1 - Folds::kTold)),
            1U);
}

TEST(Recorder, OneAlarmForEachFindingThatActs) {
  const State state;
  const StillClock clock;
  auto recorder = start(state, kRun, clock, {{"placeholder_misuse", "revoke"}}, kSeed, "t");
  Producer gateway("gateway");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(recorder->take(
        gateway, draft("credential.refused",
                       R"("credential":"api","reason":"host","host":"evil.test","port":443)")));
  }
  const auto alarms = recorder->take_alarms();
  ASSERT_EQ(alarms.size(), 1U);
  EXPECT_EQ(alarms[0].detector, "placeholder_misuse");
  EXPECT_EQ(alarms[0].action, "revoke");
  EXPECT_EQ(alarms[0].credential, "api");
  EXPECT_EQ(alarms[0].event, kRun + ":2");
  EXPECT_TRUE(recorder->take_alarms().empty());
  EXPECT_EQ(recorder->finish("end")->alerts, 1U);
}

TEST(Recorder, AnEndWhoseDecisionIsForgottenHasAnEmptyLink) {
  const State state;
  const StillClock clock;
  auto recorder = start(state, kRun, clock);
  Producer gateway("gateway");
  Producer broker("broker");
  ASSERT_TRUE(recorder->take(gateway, {"egress.decision", kAllow, 1, 0}));
  ASSERT_TRUE(recorder->take(broker, {"credential.used", "", 0, 1}));  // another producer's number
  ASSERT_TRUE(recorder->take(gateway, {"egress.ended", "", 0, 1}));
  ASSERT_TRUE(recorder->finish("end"));
  EXPECT_EQ(count_of(state, R"("of":"")"), 1U);
  EXPECT_EQ(count_of(state, R"("of":"aaaaaaaaaaaa:1"})"), 1U);
}

TEST(Producer, ForgetsTheOldestReferences) {
  Producer gateway("gateway");
  for (std::uint64_t ref = 1; ref <= Producer::kMostRefs + 10; ++ref)
    gateway.remember(ref, ref * 2);
  EXPECT_EQ(gateway.recall(10), 0U);
  EXPECT_EQ(gateway.recall(11), 22U);
  EXPECT_EQ(gateway.recall(Producer::kMostRefs + 10), 2 * (Producer::kMostRefs + 10));
}

}  // namespace
}  // namespace journal
