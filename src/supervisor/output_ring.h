// What a detached command has written, kept up to a bound: files of records in the run's folder.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/base.h"
#include "supervisor/session_frames.h"

namespace supervisor {

// At least the last kKept bytes of output lie in segments `output.N`, the oldest of which goes when
// a new one is begun. A record is one byte of stream, four of length (little-endian), its bytes.
class OutputRing {
 public:
  static constexpr std::uint64_t kKept = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kSegment = std::uint64_t{8} << 20;
  static constexpr std::size_t kHead = 5;
  static constexpr std::size_t kMostRecord = std::size_t{64} * 1024;

  // How far a reader has come, counted in bytes of output; it starts at 0.
  struct Position {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;  // of the next record in its file
    std::uint64_t bytes = 0;   // of output before it
  };
  struct Next {
    std::uint64_t lost = 0;  // bytes that were no longer kept
    std::optional<Output> output;
  };

  // In an open folder, which outlives this.
  explicit OutputRing(int folder) : folder_(folder) {}

  // Makes the first file, so that it tells of a run that it kept what there was, were it nothing.
  [[nodiscard]] base::Status open() { return begin_segment(); }
  // Keeps at most kMostRecord bytes. What cannot be written (a full disk) counts as lost.
  void append(Stream stream, std::string_view bytes);
  // What comes behind `position`, which moves on; neither lost nor output at the end.
  [[nodiscard]] Next next(Position& position) const;
  [[nodiscard]] bool at_end(const Position& position) const { return position.bytes == written_; }
  [[nodiscard]] std::uint64_t bytes(Stream stream) const {
    return stream == Stream::output ? output_bytes_ : error_bytes_;
  }

 private:
  struct Segment {
    std::uint64_t number = 0;
    std::uint64_t first = 0;  // bytes of output before it
    std::uint64_t size = 0;   // of the file
    base::Fd file;
  };
  [[nodiscard]] base::Status begin_segment();
  [[nodiscard]] base::Status write_record(Stream stream, std::string_view bytes);

  int folder_;
  std::deque<Segment> segments_;
  std::uint64_t next_number_ = 0;
  bool gap_ = false;           // something could not be kept behind the last segment
  std::uint64_t written_ = 0;  // bytes of output so far, lost ones included
  std::uint64_t output_bytes_ = 0;
  std::uint64_t error_bytes_ = 0;
};

// The record at `offset` of a segment: its stream and bytes; nullopt at the end, and for what is no
// whole record.
[[nodiscard]] std::optional<Output> read_record(int file, std::uint64_t offset);

}  // namespace supervisor
