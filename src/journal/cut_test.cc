// Tests of how long texts are cut.
#include "journal/cut.h"

#include "journal/fixture.h"

namespace journal {
namespace {

using namespace fixture;

TEST(Cut, ShortTextsAreWholeAndLongOnesKeepTheirHash) {
  const std::string most(kMostText, 'a');
  EXPECT_EQ(cut_text(most), most);
  const std::string longer = most + "b";
  EXPECT_EQ(cut_text(longer), most + "…[2049 bytes, sha256 " + base::sha256(longer) + "]");
  // Not within a character.
  const std::string umlauts = "x" + std::string(kMostText - 2, 'a') + "ä" + most;
  EXPECT_TRUE(cut_text(umlauts).starts_with("x" + std::string(kMostText - 2, 'a') + "…["));
  EXPECT_EQ(cut_text(std::string(9000, '\x80')).substr(0, 3), "…");
}

TEST(Cut, ListsAreBoundedInNumberAndBytes) {
  EXPECT_EQ(cut_texts(std::vector<std::string>{"a", "b c"}), R"(["a","b c"])");
  std::string rest;
  for (int i = 64; i < 100; ++i) rest += std::string("x") + '\0';
  EXPECT_TRUE(cut_texts(std::vector<std::string>(100, "x"))
                  .ends_with(R"("x","…[36 more, sha256 )" + base::sha256(rest) + R"(]"])"));
  EXPECT_LT(cut_texts(std::vector<std::string>(60, std::string(100'000, 'x'))).size(), 20'000U);
}

// Whoever hands an event in, none of its texts stands in the journal whole when it is long.
TEST(Cut, EveryProducersTextsAreCut) {
  const State state;
  const StillClock clock;
  auto recorder = start(state, kRun, clock);
  const std::string text(20'000, 'q');
  const std::string members = R"("host":")" + text + R"(","path":")" + text + R"(","fix":")" +
                              text + R"(","reason":"short","count":3)";
  const std::vector<std::pair<std::string, std::string>> writers = {
      {"gateway", "egress.decision"}, {"broker", "credential.refused"}, {"supervisor", "exec"}};
  for (const auto& [who, type] : writers) {
    Producer producer(who);
    ASSERT_TRUE(recorder->take(producer, draft(type, members)));
  }
  ASSERT_TRUE(recorder->finish("end"));
  std::size_t seen = 0;
  for (const std::string& line : lines_of(state.journal(kRun))) {
    if (line.find("qqq") == std::string::npos) continue;
    ++seen;
    EXPECT_LT(line.size(), 5000U);
    if (line.find(R"("type":"alert")") != std::string::npos) continue;
    const auto read = Members::parse_object(line);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->text("path"), cut_text(text));
    EXPECT_EQ(read->text("reason"), "short");
    EXPECT_FALSE(read->has("fix"));
  }
  EXPECT_EQ(seen, writers.size() + 1);  // and an alert about the credential
}

}  // namespace
}  // namespace journal
