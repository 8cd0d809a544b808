// Golden chains: a fixed key and a clock that stands still give the same bytes for ever.
#include "journal/chain.h"

#include "journal/fixture.h"

namespace journal {
namespace {

using namespace fixture;

TEST(Time, IsWrittenWithNanoseconds) {
  EXPECT_EQ(time_text({0, 0}), "1970-01-01T00:00:00.000000000Z");
  EXPECT_EQ(time_text({951782399, 999999999}), "2000-02-28T23:59:59.999999999Z");
  EXPECT_EQ(time_text({951782400, 1}), "2000-02-29T00:00:00.000000001Z");
  EXPECT_EQ(time_text({1767322245, 123456789}), "2026-01-02T02:50:45.123456789Z");
}

TEST(Keys, ReadBackWhatTheyWriteAndNothingElse) {
  const PublicKey key = SigningKey::from_seed(kSeed)->public_key();
  EXPECT_EQ(PublicKey::from_pem(key.pem(), "key"), key);
  std::string other = key.pem();
  other.replace(other.find("MCow"), 4, "MCox");
  EXPECT_FALSE(PublicKey::from_pem(other, "key"));
  EXPECT_FALSE(PublicKey::from_pem("", "key"));
  const std::string signature = SigningKey::from_seed(kSeed)->sign("text");
  EXPECT_TRUE(key.signed_by("text", signature));
  EXPECT_FALSE(key.signed_by("texu", signature));
  for (std::size_t i = 0; i < signature.size(); ++i) {
    std::string changed = signature;
    changed[i] = changed[i] == 'a' ? 'A' : changed[i] == '0' ? '1' : '0';
    EXPECT_FALSE(key.signed_by("text", changed)) << i;
  }
}

TEST(Keys, AreMadeOnceAndKeptPrivate) {
  const Folder folder;
  const auto fd = os::open(folder.path(), O_RDONLY | O_DIRECTORY, 0);
  ASSERT_TRUE(fd);
  const auto first = SigningKey::load_or_make(fd->get());
  ASSERT_TRUE(first) << first.error().line();
  // A writer that was killed may have left this.
  spill(folder.of("journal.key.new"), "half");
  std::filesystem::remove(folder.of("journal.pub"));
  const auto second = SigningKey::load_or_make(fd->get());
  ASSERT_TRUE(second);
  EXPECT_EQ(first->public_key(), second->public_key());
  EXPECT_EQ(PublicKey::from_pem(slurp(folder.of("journal.pub")), "pub"), first->public_key());
  const auto status = os::fstat(os::open(folder.of("journal.key"), O_RDONLY, 0)->get(), "key");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->st_mode & 07777U, 0600U);
  spill(folder.of("journal.pub"), SigningKey::from_seed(kSeed)->public_key().pem());
  EXPECT_FALSE(SigningKey::load_or_make(fd->get()));  // not the other half
  spill(folder.of("journal.key"), kPem);
  EXPECT_TRUE(SigningKey::load_or_make(fd->get()));
  spill(folder.of("journal.key"), "garbage");
  EXPECT_FALSE(SigningKey::load_or_make(fd->get()));
}

TEST(Chain, GoldenRun) {
  const State state;
  whole_run(state, kRun, 1);
  EXPECT_EQ(slurp(state.journal(kRun)),
            slurp(std::string(CERCO_SOURCE_DIR) + "/src/journal/golden/run.jsonl"));
  EXPECT_EQ(slurp(state.host()),
            slurp(std::string(CERCO_SOURCE_DIR) + "/src/journal/golden/host.jsonl"));
}

TEST(Chain, ACheckpointStandsBehindEvery256Events) {
  const State state;
  const Summary summary = whole_run(state, kRun, 600);
  const auto lines = lines_of(state.journal(kRun));
  EXPECT_EQ(lines.size(), 603U);
  EXPECT_EQ(summary.events, 603U);
  EXPECT_EQ(summary.head, base::sha256(lines.back()));
  std::string found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(R"("type":"checkpoint")") != std::string::npos)
      found += std::to_string(i + 1) + " ";
  }
  EXPECT_EQ(found, "257 514 603 ");
  EXPECT_EQ(lines_of(state.host()).size(), 4U);  // start, two checkpoints, end
}

TEST(Chain, GoesOnInAnotherFile) {
  const State state;
  const StillClock clock;
  auto recorder = start(state, kRun, clock);
  Producer supervisor("supervisor");
  ASSERT_TRUE(recorder->take(supervisor, draft("exec", "")));
  auto next = open_next(state.path(), kRun, 2);
  ASSERT_TRUE(next);
  ASSERT_TRUE(recorder->go_on_in(std::move(*next)));
  ASSERT_TRUE(recorder->take(supervisor, draft("exec", "")));
  ASSERT_TRUE(recorder->finish("end"));
  EXPECT_EQ(lines_of(state.journal(kRun)).size(), 1U);
  EXPECT_EQ(lines_of(state.journal(kRun + ".2")).size(), 2U);
  const auto checked = verify(state.path(), kRun, "", "");
  ASSERT_TRUE(checked);
  EXPECT_TRUE(checked->holds) << checked->problem;
  EXPECT_EQ(checked->events, 3U);
  // A file in the middle that is gone is found.
  std::filesystem::remove(state.journal(kRun + ".2"));
  EXPECT_FALSE(verify(state.path(), kRun, "", "")->holds);
}

TEST(OpenFiles, ARunIdIsNeverUsedAgain) {
  const State state;
  ASSERT_TRUE(open_files(state.path(), kRun));
  const auto again = open_files(state.path(), kRun);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().number, EEXIST);
}

TEST(HostChain, ALineThatWasLeftUnfinishedIsCutOff) {
  const State state;
  whole_run(state, kRun, 1);
  const std::string whole = slurp(state.host());
  spill(state.host(), whole + R"({"v":1,"seq":3,"id")");
  whole_run(state, kOther, 1);
  EXPECT_TRUE(slurp(state.host()).starts_with(whole));
  const auto checked = verify(state.path(), "", "", "");
  ASSERT_TRUE(checked);
  EXPECT_TRUE(checked->holds) << checked->problem;
}

TEST(HostChain, ACutTailStaysToBeSeenWhenTheChainGoesOn) {
  const State state;
  whole_run(state, kRun, 1);
  auto lines = lines_of(state.host());
  lines.pop_back();
  spill(state.host(), text_of(lines));
  whole_run(state, kOther, 1);
  const auto checked = verify(state.path(), "", "", "");
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->problem, "host.jsonl:2: number 2 is missing");
}

TEST(HostChain, AChangedLastLineDoesNotStopNewRuns) {
  const State state;
  whole_run(state, kRun, 1);
  spill(state.host(), slurp(state.host()) + std::string(9000, 'x') + "\n");
  whole_run(state, kOther, 1);
  EXPECT_FALSE(verify(state.path(), "", "", "")->holds);
}

}  // namespace
}  // namespace journal
