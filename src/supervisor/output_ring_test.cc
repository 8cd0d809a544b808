// What is kept of a detached command's output, and what readers are told of the rest.
#include "supervisor/output_ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "os/os.h"

namespace supervisor {
namespace {

class OutputRingTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/cerco-ring-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
    folder_ = os::open(path_, O_RDONLY | O_DIRECTORY, 0).value();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // Everything behind the position: bytes of both streams in order, and what was lost.
  static std::string all(const OutputRing& ring, OutputRing::Position& at, std::uint64_t& lost) {
    std::string text;
    while (!ring.at_end(at)) {
      auto next = ring.next(at);
      lost += next.lost;
      if (next.output) text += next.output->bytes;
      if (!next.output && next.lost == 0) break;
    }
    return text;
  }

  std::string path_;
  base::Fd folder_;
};

TEST_F(OutputRingTest, streams_keep_their_order) {
  OutputRing ring(folder_.get());
  OutputRing::Position at;
  EXPECT_TRUE(ring.at_end(at));
  ring.append(Stream::output, "one");
  ring.append(Stream::error, "two");
  const auto first = ring.next(at);
  ASSERT_TRUE(first.output);
  EXPECT_EQ(first.output->stream, Stream::output);
  EXPECT_EQ(first.output->bytes, "one");
  const auto second = ring.next(at);
  ASSERT_TRUE(second.output);
  EXPECT_EQ(second.output->stream, Stream::error);
  EXPECT_TRUE(ring.at_end(at));
  EXPECT_FALSE(ring.next(at).output);
  ring.append(Stream::output, "three");
  EXPECT_EQ(ring.next(at).output->bytes, "three");
  EXPECT_EQ(ring.bytes(Stream::output), 8U);
  EXPECT_EQ(ring.bytes(Stream::error), 3U);
}

TEST_F(OutputRingTest, the_last_64_mib_stay_and_the_rest_is_counted) {
  OutputRing ring(folder_.get());
  OutputRing::Position slow;
  const std::string piece(OutputRing::kMostRecord, 'x');
  const std::uint64_t pieces = (OutputRing::kKept + (OutputRing::kSegment * 3)) / piece.size();
  for (std::uint64_t i = 0; i < pieces; ++i) ring.append(Stream::output, piece);
  ring.append(Stream::output, "end");
  std::uint64_t lost = 0;
  const std::string text = all(ring, slow, lost);
  EXPECT_GT(lost, 0U);
  EXPECT_GE(text.size(), OutputRing::kKept);
  EXPECT_EQ(text.size() + lost, (pieces * piece.size()) + 3);
  EXPECT_TRUE(text.ends_with("xend"));
  std::uint64_t on_disk = 0;
  for (const auto& file : std::filesystem::directory_iterator(path_)) on_disk += file.file_size();
  EXPECT_LE(on_disk, OutputRing::kKept + (2 * OutputRing::kSegment));
}

TEST_F(OutputRingTest, what_cannot_be_written_counts_as_lost) {
  // A folder that takes no file.
  const base::Fd proc = os::open("/proc", O_RDONLY | O_DIRECTORY, 0).value();
  OutputRing ring(proc.get());
  ring.append(Stream::output, "gone");
  OutputRing::Position at;
  std::uint64_t lost = 0;
  EXPECT_EQ(all(ring, at, lost), "");
  EXPECT_EQ(lost, 4U);
  EXPECT_TRUE(ring.at_end(at));
}

TEST_F(OutputRingTest, a_record_that_is_none_ends_the_reading) {
  for (const std::string& bytes :
       {std::string("\0\0\0", 3), std::string("\2\1\0\0\0x", 6),
        std::string("\0\377\377\377\377", 5), std::string("\0\4\0\0\0abc", 8)}) {
    const base::Fd file = os::open(path_ + "/x", O_RDWR | O_CREAT | O_TRUNC, 0600).value();
    ASSERT_TRUE(os::write_all(file.get(), bytes, "x"));
    EXPECT_FALSE(read_record(file.get(), 0)) << bytes.size();
  }
}

}  // namespace
}  // namespace supervisor
