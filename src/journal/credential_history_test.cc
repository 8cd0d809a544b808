// What became of a run's credentials.
#include "journal/fixture.h"

namespace journal {
namespace {

using fixture::draft;
using fixture::kRun;

TEST(CredentialHistory, IsWhatTheJournalTells) {
  const fixture::State state;
  const fixture::StillClock clock;
  auto recorder = fixture::start(state, kRun, clock);
  Producer broker("broker");
  const auto take = [&](const std::string& type, const std::string& members) {
    EXPECT_TRUE(recorder->take(broker, draft(type, members))) << type;
  };
  take("credential.issued",
       R"("credential":"api","hosts":["api.test"],"methods":["GET"],"paths":["/**"],"uses":9)");
  take("credential.issued",
       R"("credential":"git","hosts":["git.test"],"methods":["GET"],"paths":["/**"])");
  const std::string place = R"("host":"api.test","port":443,"method":"GET","path":"/a")";
  take("credential.used", R"("credential":"api",)" + place + R"(,"tls":true,"use":1)");
  take("credential.used", R"("credential":"api",)" + place + R"(,"tls":true,"use":2)");
  take("credential.refused", R"("credential":"api",)" + place + R"(,"reason":"path")");
  take("credential.refused", R"("credential":"none",)" + place + R"(,"reason":"unknown")");
  take("credential.revoked", R"("credential":"git","why":"operator","uses":0)");
  ASSERT_TRUE(recorder->flush());
  const auto running = credentials(state.of("journal"), kRun);
  ASSERT_TRUE(running) << running.error().line();
  EXPECT_FALSE(running->ended);
  ASSERT_EQ(running->credentials.size(), 2U);
  const CredentialHistory& api = running->credentials[0];
  EXPECT_EQ(api.name, "api");
  EXPECT_EQ(api.issued, R"("hosts":["api.test"],"methods":["GET"],"paths":["/**"],"uses":9)");
  EXPECT_EQ(api.uses, 2U);
  EXPECT_EQ(api.refused, 1U);
  EXPECT_TRUE(api.last_used.starts_with("2026-01-02T02:50:45"));
  EXPECT_EQ(api.revoked, "");
  const CredentialHistory& git = running->credentials[1];
  EXPECT_EQ(git.why, "operator");
  EXPECT_TRUE(git.revoked.starts_with("2026-01-02T"));
  EXPECT_EQ(git.uses + git.refused, 0U);
}

TEST(CredentialHistory, OfARunThatHasEndedOrIsNotThere) {
  const fixture::State state;
  const fixture::StillClock clock;
  auto recorder = fixture::start(state, kRun, clock);
  Producer supervisor("supervisor");
  EXPECT_TRUE(recorder->take(supervisor, draft("run.ended", R"("status":0)")));
  ASSERT_TRUE(recorder->flush());
  const auto ended = credentials(state.of("journal"), kRun);
  ASSERT_TRUE(ended);
  EXPECT_TRUE(ended->ended);
  EXPECT_TRUE(ended->credentials.empty());
  EXPECT_FALSE(credentials(state.of("journal"), fixture::kOther));
}

}  // namespace
}  // namespace journal
