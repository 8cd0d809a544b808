// Words of the stream: what goes in comes out, and what makes no sense is told at once.
#include "tunnel/words.h"

#include <gtest/gtest.h>

namespace tunnel {
namespace {

std::string bytes_of(const Word& word) {
  std::string out;
  write(out, word);
  return out;
}

std::string number(std::uint32_t value) {
  std::string out;
  for (unsigned i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

const Word kWords[] = {
    {Say::message, 7, 0, {Kind::input, Kind::output, Kind::stream, Kind::messages}, "order"},
    {Say::message, 1, 0, {}, std::string(kMostMessage, 'x')},
    {Say::data, 3, 0, {}, std::string("a\0b", 3)},
    {Say::credit, 0, 4096, {}, {}},
    {Say::end, 0xffffffff, 0, {}, {}},
    {Say::stop, 2, 0, {}, {}}};

TEST(Words, what_is_written_is_read) {
  for (const Word& word : kWords) {
    Reader reader;
    reader.feed(bytes_of(word));
    const auto read = reader.next();
    ASSERT_TRUE(read && *read) << static_cast<int>(word.say);
    EXPECT_EQ(**read, word);
    EXPECT_FALSE(*reader.next());
  }
}

TEST(Words, any_cut_of_the_stream_reads_the_same) {
  std::string all;
  for (const Word& word : kWords) write(all, word);
  for (const std::size_t piece : {1U, 5U, 13U, 70'000U}) {
    Reader reader;
    std::vector<Word> read;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      reader.feed(std::string_view(all).substr(at, piece));
      while (true) {
        auto word = reader.next();
        ASSERT_TRUE(word);
        if (!*word) break;
        read.push_back(std::move(**word));
      }
    }
    EXPECT_EQ(read, std::vector<Word>(std::begin(kWords), std::end(kWords))) << piece;
  }
}

TEST(Words, nonsense_is_told) {
  const std::string rows[] = {
      number(kMostBody + 1) + number(1) + number(1),        // longer than any word
      number(0) + number(0) + number(1),                    // no such word
      number(0) + number(6) + number(1),                    // nor such one
      number(0) + number(1) + number(1),                    // a message without a count
      number(4) + number(1) + number(1) + number(0),        // without bytes
      number(5) + number(1) + number(1) + number(1) + "x",  // with fewer kinds than it says
      number(9) + number(1) + number(1) + number(1) + number(5) + "x",  // of a kind that is none
      number(9) + number(1) + number(1) + number(1) + number(0) + "x",
      number(5) + number(1) + number(1) + number(kMostFds + 1) + "x",
      number(0) + number(2) + number(1),          // empty data
      number(3) + number(3) + number(1) + "xxx",  // credit of three bytes
      number(1) + number(4) + number(1) + "x",    // an end with a body
      number(1) + number(5) + number(1) + "x"};
  for (const std::string& row : rows) {
    Reader reader;
    reader.feed(row);
    EXPECT_FALSE(reader.next()) << testing::PrintToString(row);
  }
}

}  // namespace
}  // namespace tunnel
