// Tests of files that keep holes for their zeros.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "os/os.h"
#include "os/sparse.h"

namespace {

struct Written {
  std::string bytes;
  std::int64_t held = 0;  // bytes that the file system holds
};

// Writes `bytes` in pieces of that size.
Written written(std::string_view bytes, std::size_t piece) {
  const base::Fd file(::open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  EXPECT_TRUE(file.open());
  os::SparseWriter writer(file.get());
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    EXPECT_TRUE(writer.write(bytes.substr(at, piece), "file"));
  }
  EXPECT_TRUE(writer.end("file"));
  struct stat status = {};
  EXPECT_EQ(::fstat(file.get(), &status), 0);
  return {os::read_at(file.get(), bytes.size() + 1, 0, "file").value(), status.st_blocks * 512};
}

std::string pattern(std::initializer_list<std::pair<char, std::size_t>> runs) {
  std::string all;
  for (const auto& [byte, count] : runs) all.append(count, byte);
  return all;
}

TEST(SparseWriter, WritesTheSameBytesHoweverTheyCome) {
  const std::string texts[] = {
      "",
      std::string(1, '\0'),
      "x",
      pattern({{'\0', 4096}}),
      pattern({{'a', 4095}, {'\0', 2}, {'b', 4095}}),
      pattern({{'\0', 10000}, {'a', 1}, {'\0', 20000}, {'b', 5000}, {'\0', 9999}}),
      pattern({{'a', 1}, {'\0', 8191}}),
      pattern({{'a', 4096}, {'\0', 4096}, {'b', 1}}),
  };
  for (const std::string& text : texts) {
    for (const std::size_t piece : {1UL, 7UL, 4096UL, 5000UL, 1UL << 20}) {
      EXPECT_EQ(written(text, piece).bytes, text) << text.size() << " in pieces of " << piece;
    }
  }
}

TEST(SparseWriter, ZerosTakeNoRoom) {
  const std::string text = pattern({{'a', 1}, {'\0', 8 << 20}, {'b', 1}, {'\0', 8 << 20}});
  const Written all = written(text, 65536);
  EXPECT_EQ(all.bytes, text);
  EXPECT_LE(all.held, 64 << 10);
}

TEST(SparseWriter, SaysWhatCannotBeWritten) {
  const base::Fd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  os::SparseWriter writer(full.get());
  const auto done = writer.write("x", "file");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().number, ENOSPC);
  const base::Fd fixed(::memfd_create("fixed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::fcntl(fixed.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  os::SparseWriter hole(fixed.get());
  EXPECT_TRUE(hole.write(std::string(8192, '\0'), "file"));
  EXPECT_FALSE(hole.end("file"));
}

}  // namespace
