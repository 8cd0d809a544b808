// Tests of verification: whatever is done to the files of a run that has ended is found.
#include <sys/stat.h>

#include <algorithm>

#include "journal/chain.h"
#include "journal/fixture.h"

namespace journal {
namespace {

using namespace fixture;

bool holds(const State& state) {
  const auto checked = verify(state.path(), "", "", "");
  return checked && checked->holds;
}

std::string problem(const State& state) {
  const auto checked = verify(state.path(), "", "", "");
  return checked ? checked->problem : checked.error().line();
}

// Writes `text` over a file, asks, and puts the old bytes back.
template <class Ask>
auto with(const std::string& path, std::string_view text, Ask ask) {
  const std::string before = slurp(path);
  spill(path, text);
  auto answer = ask();
  spill(path, before);
  return answer;
}

class Tampering : public ::testing::Test {
 protected:
  Tampering() {
    whole_run(state_, kRun, 2);
    whole_run(state_, kOther, 1);
  }
  [[nodiscard]] bool holds_with(const std::string& path, std::string_view text) {
    return with(path, text, [&] { return holds(state_); });
  }
  State state_;
};

TEST_F(Tampering, NothingWasDone) {
  const auto checked = verify(state_.path(), "", "", "");
  ASSERT_TRUE(checked) << checked.error().line();
  EXPECT_TRUE(checked->holds) << checked->problem;
  EXPECT_EQ(checked->events, 3U + 2U);
  EXPECT_EQ(checked->checkpoints, 2U);
  EXPECT_TRUE(checked->notes.empty());
}

// Issue 3, line 6: flipping any one byte.
TEST_F(Tampering, EveryFlippedByteIsFound) {
  for (const std::string& path :
       {state_.journal(kRun), state_.host(), state_.of("keys/host.last")}) {
    const std::string whole = slurp(path);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      // Each byte by one of its bits: 0x20 is the one that makes capitals of letters.
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ (i % 2 == 0 ? 0x20 : 1 << i % 7));
      EXPECT_FALSE(holds_with(path, changed)) << path << " byte " << i;
    }
  }
  EXPECT_TRUE(holds(state_));
}

TEST_F(Tampering, EveryBytePutInIsFound) {
  for (const std::string& path : {state_.journal(kRun), state_.host()}) {
    const std::string whole = slurp(path);
    for (std::size_t i = 0; i <= whole.size(); ++i) {
      std::string changed = whole;
      changed.insert(i, 1, " \n0"[i % 3]);
      // Bytes behind the last line of the host chain are a line that was never finished.
      if (path == state_.host() && i == whole.size()) continue;
      EXPECT_FALSE(holds_with(path, changed)) << path << " at " << i;
    }
  }
}

TEST_F(Tampering, EveryTruncationIsFound) {
  for (const std::string& path :
       {state_.journal(kRun), state_.host(), state_.of("keys/host.last")}) {
    const std::string whole = slurp(path);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(holds_with(path, whole.substr(0, size))) << path << " to " << size;
    }
  }
}

TEST_F(Tampering, LinesThatAreDroppedSwappedOrDoubledAreFound) {
  for (const std::string& path : {state_.journal(kRun), state_.host()}) {
    const auto lines = lines_of(path);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      auto dropped = lines;
      dropped.erase(dropped.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(holds_with(path, text_of(dropped))) << i;
      auto doubled = lines;
      doubled.insert(doubled.begin() + static_cast<std::ptrdiff_t>(i), lines[i]);
      EXPECT_FALSE(holds_with(path, text_of(doubled))) << i;
      for (std::size_t j = 0; j < i; ++j) {
        auto swapped = lines;
        std::swap(swapped[i], swapped[j]);
        EXPECT_FALSE(holds_with(path, text_of(swapped))) << i << " " << j;
      }
    }
  }
}

// Changing an event and making every later hash anew needs the key for the checkpoints.
// A line that follows by its hash, which anybody can count out, but stands behind the signed end.
TEST_F(Tampering, ALineBehindTheSignedEndIsFound) {
  const std::string whole = slurp(state_.journal(kRun));
  const std::size_t start = whole.rfind('\n', whole.size() - 2) + 1;
  const std::string last = whole.substr(start, whole.size() - 1 - start);
  const std::string run(kRun);
  const std::string more =
      R"({"v":1,"seq":4,"id":")" + run + R"(:4","time":"2026-01-02T03:04:05.000000006Z","run":")" +
      run + R"(","task":"t","type":"egress.decision","prev":")" + base::sha256(last) + "\"}\n";
  const std::string found =
      with(state_.journal(kRun), whole + more, [&] { return problem(state_); });
  EXPECT_TRUE(found.contains("behind the signed end")) << found;
}

TEST_F(Tampering, AChainThatWasMadeAnewIsFound) {
  auto lines = lines_of(state_.journal(kRun));
  const std::size_t at = lines[0].find(R"("n":0)");
  ASSERT_NE(at, std::string::npos);
  lines[0].replace(at, 5, R"("n":7)");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t prev = lines[i].find(R"("prev":")") + 8;
    lines[i].replace(prev, 64, base::sha256(lines[i - 1]));
  }
  EXPECT_EQ(with(state_.journal(kRun), text_of(lines), [&] { return problem(state_); }),
            "aaaaaaaaaaaa.jsonl:3: its signature does not hold");
  // Left out, the checkpoint is missed by the host chain.
  lines.pop_back();
  EXPECT_EQ(with(state_.journal(kRun), text_of(lines), [&] { return problem(state_); }),
            "aaaaaaaaaaaa.jsonl: events 3 to 3 are missing: host.jsonl recorded 3");
}

TEST_F(Tampering, ACheckpointOfAnotherKeyIsFound) {
  const SigningKey forger = *SigningKey::from_seed("fedcba9876543210fedcba9876543210");
  auto lines = lines_of(state_.journal(kRun));
  const std::string& line = lines.back();
  const std::string prev = line.substr(line.find(R"("prev":")") + 8, 64);
  std::string forged = line.substr(0, line.find(R"("key_id")"));
  forged += R"("key_id":")" + forger.id() + R"(","sig":")" +
            forger.sign(checkpoint_text(kRun, 3, prev)) + R"("})";
  lines.back() = forged;
  EXPECT_EQ(with(state_.journal(kRun), text_of(lines), [&] { return problem(state_); }),
            "aaaaaaaaaaaa.jsonl:3: signed by another key");
  // With our key's name on it.
  const std::string with_name =
      base::join(std::vector<std::string>{forged.substr(0, forged.find(forger.id())),
                                          forged.substr(forged.find(forger.id()) + 16)},
                 SigningKey::from_seed(kSeed)->id());
  lines.back() = with_name;
  EXPECT_EQ(with(state_.journal(kRun), text_of(lines), [&] { return problem(state_); }),
            "aaaaaaaaaaaa.jsonl:3: its signature does not hold");
}

TEST_F(Tampering, AnotherKeyDoesNotHold) {
  const SigningKey other = *SigningKey::from_seed("fedcba9876543210fedcba9876543210");
  spill(state_.of("other.pub"), other.public_key().pem());
  const auto checked = verify(state_.path(), kRun, state_.of("other.pub"), "");
  ASSERT_TRUE(checked);
  EXPECT_FALSE(checked->holds);
  spill(state_.of("other.pub"), SigningKey::from_seed(kSeed)->public_key().pem());
  EXPECT_TRUE(verify(state_.path(), kRun, state_.of("other.pub"), "")->holds);
  spill(state_.of("other.pub"), "no key");
  EXPECT_FALSE(verify(state_.path(), kRun, state_.of("other.pub"), ""));
}

TEST_F(Tampering, FilesOfTwoRunsThatAreSwappedAreFound) {
  const std::string one = slurp(state_.journal(kRun));
  const std::string two = slurp(state_.journal(kOther));
  spill(state_.journal(kRun), two);
  spill(state_.journal(kOther), one);
  EXPECT_EQ(problem(state_), "aaaaaaaaaaaa.jsonl:1: it belongs to another run");
}

TEST_F(Tampering, AFileThatIsGoneOrMadeUpIsFound) {
  spill(state_.journal("cccccccccccc"), slurp(state_.journal(kRun)));
  EXPECT_FALSE(holds(state_));
  std::filesystem::remove(state_.journal("cccccccccccc"));
  EXPECT_TRUE(holds(state_));
  spill(state_.journal(kRun + ".2"), "");
  EXPECT_TRUE(holds(state_));
  spill(state_.journal(kRun + ".2"), "{");
  EXPECT_FALSE(holds(state_));
  std::filesystem::remove(state_.journal(kRun + ".2"));
  std::filesystem::remove(state_.journal(kRun));
  EXPECT_EQ(problem(state_), "aaaaaaaaaaaa.jsonl: missing");
}

TEST_F(Tampering, TheHostChainOrItsNumberThatIsGoneIsFound) {
  const std::string last = slurp(state_.of("keys/host.last"));
  std::filesystem::remove(state_.of("keys/host.last"));
  EXPECT_EQ(problem(state_), "keys/host.last: missing");
  spill(state_.of("keys/host.last"), last);
  std::filesystem::remove(state_.host());
  EXPECT_EQ(problem(state_), "host.jsonl: missing");
}

// The whole host chain of an older day, put back with the file of the run that it still knew.
TEST(Verify, AnOldStateThatWasPutBackIsFound) {
  const State state;
  whole_run(state, kRun, 1);
  const std::string host = slurp(state.host());
  whole_run(state, kOther, 1);
  spill(state.host(), host);
  std::filesystem::remove(state.journal(kOther));
  EXPECT_EQ(problem(state), "host.jsonl: lines 3 to 4 are cut off: keys/host.last has number 4");
}

TEST(Verify, AnotherPlaceWithoutKeysSaysWhatCannotBeSeen) {
  const State state;
  whole_run(state, kRun, 1);
  const State elsewhere;
  std::filesystem::copy(state.of("journal"), elsewhere.of("journal"),
                        std::filesystem::copy_options::recursive);
  std::filesystem::copy_file(state.of("keys/journal.pub"), elsewhere.of("mine.pub"));
  std::filesystem::remove_all(elsewhere.of("keys"));
  const auto checked = verify(elsewhere.path(), "", elsewhere.of("mine.pub"), "");
  ASSERT_TRUE(checked) << checked.error().line();
  EXPECT_TRUE(checked->holds) << checked->problem;
  ASSERT_EQ(checked->notes.size(), 1U);
}

TEST(Verify, TheHeadOfAReportMustBeTheRunsHead) {
  const State state;
  const Summary summary = whole_run(state, kRun, 3);
  EXPECT_TRUE(verify(state.path(), kRun, "", summary.head)->holds);
  EXPECT_FALSE(verify(state.path(), kRun, "", zeros())->holds);
  whole_run(state, kOther, 1);
  EXPECT_TRUE(verify(state.path(), "", "", summary.head)->holds);  // of some run
  EXPECT_EQ(verify(state.path(), "", "", "ab")->problem, "no run has the head ab");
}

TEST(Verify, ARunThatIsStillWrittenHoldsAndSaysSo) {
  const State state;
  const StillClock clock;
  auto recorder = start(state, kRun, clock);
  Producer supervisor("supervisor");
  ASSERT_TRUE(recorder->take(supervisor, draft("exec", "")));
  ASSERT_TRUE(recorder->flush());
  auto checked = verify(state.path(), "", "", "");
  ASSERT_TRUE(checked && checked->holds);
  EXPECT_EQ(checked->notes[0],
            "aaaaaaaaaaaa: no signed end: it is still running, or its journal was killed; the last "
            "1 events "
            "stand behind the last checkpoint");
  // A journal that was killed in the middle of a line.
  spill(state.journal(kRun), slurp(state.journal(kRun)) + R"({"v":1)");
  checked = verify(state.path(), "", "", "");
  ASSERT_TRUE(checked && checked->holds) << checked->problem;
  EXPECT_EQ(checked->notes[0],
            "aaaaaaaaaaaa.jsonl: its last line is unfinished (6 bytes) and does not count");
  EXPECT_EQ(checked->events, 1U);
}

TEST(Verify, ARunThatRetentionRemovedIsNotMissing) {
  const State state;
  const Summary summary = whole_run(state, kRun, 1);
  auto files = open_files(state.path(), kOther);
  ASSERT_TRUE(files);
  std::filesystem::remove(state.journal(kOther));
  auto last = HostChain::open_last((*files)[2].get());
  ASSERT_TRUE(last);
  const SigningKey key = *SigningKey::from_seed(kSeed);
  HostChain chain(std::move((*files)[1]), std::move(*last), key);
  base::JsonObject members;
  members.add("first", 1).add("last", summary.events).add("head", summary.head);
  std::filesystem::remove(state.journal(kRun));
  EXPECT_FALSE(holds(state));
  ASSERT_TRUE(chain.append(kRun, "journal.pruned", members.members(), {1, 0}));
  EXPECT_TRUE(holds(state)) << problem(state);
}

// A pipe that nobody writes would be waited for.
TEST_F(Tampering, WhatIsNoRegularFileIsFoundWithoutWaiting) {
  for (const std::string& path :
       {state_.journal(kRun), state_.host(), state_.of("keys/host.last")}) {
    const std::string kept = path + ".kept";
    std::filesystem::rename(path, kept);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_TRUE(problem(state_).ends_with("is no regular file")) << problem(state_);
    std::filesystem::remove(path);
    std::filesystem::create_symlink(kept, path);
    EXPECT_TRUE(problem(state_).ends_with("is no regular file")) << problem(state_);
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_TRUE(problem(state_).ends_with("is no regular file")) << problem(state_);
    std::filesystem::remove(path);
    std::filesystem::rename(kept, path);
  }
  ASSERT_EQ(::mkfifo(state_.of("journal/cccccccccccc.jsonl").c_str(), 0600), 0);
  EXPECT_FALSE(holds(state_));
  EXPECT_TRUE(runs(state_.of("journal"))) << "nor does a listing wait for it";
  EXPECT_FALSE(read(state_.of("journal"), "cccccccccccc", {}, [](std::string_view) {}));
}

TEST_F(Tampering, AJournalOrKeyThatIsGoneWhileItsTracesAreThere) {
  std::filesystem::rename(state_.of("journal"), state_.of("kept"));
  for (const std::string& run : {std::string(), kRun}) {
    const auto checked = verify(state_.path(), run, "", "");
    ASSERT_TRUE(checked) << checked.error().line();
    EXPECT_FALSE(checked->holds);
    EXPECT_EQ(checked->problem, "host.jsonl: missing");
  }
  std::filesystem::rename(state_.of("kept"), state_.of("journal"));
  std::filesystem::remove(state_.of("keys/journal.pub"));
  for (const char* trace : {"keys/host.last", "keys/journal.key", "journal/host.jsonl"}) {
    const auto checked = verify(state_.path(), "", "", "");
    ASSERT_TRUE(checked) << checked.error().line();
    EXPECT_FALSE(checked->holds);
    EXPECT_EQ(checked->problem,
              std::string("keys/journal.pub: missing, while ") + trace + " is there");
    std::filesystem::remove(state_.of(trace));
  }
}

TEST(Verify, NoJournalIsNotFound) {
  const State state;
  whole_run(state, kRun, 1);
  for (const auto& answer :
       {verify(state.path(), kOther, "", ""), verify("/nonexistent", "", "", "")}) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().kind, base::Kind::not_found);
  }
}

}  // namespace
}  // namespace journal
