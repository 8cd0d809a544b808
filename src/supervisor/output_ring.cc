// What a detached command has written, kept up to a bound.
#include "supervisor/output_ring.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <unistd.h>

#include "os/os.h"

namespace supervisor {

namespace {

constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

std::string name_of(std::uint64_t number) {
  return kOutputPrefix + std::to_string(number);
}

std::string record(Stream stream, std::string_view bytes) {
  std::string text(1, static_cast<char>(stream));
  for (unsigned at = 0; at < 32; at += 8) text.push_back(static_cast<char>(bytes.size() >> at));
  return text.append(bytes);
}

}  // namespace

std::optional<Output> read_record(int file, std::uint64_t offset) {
  const auto head = os::read_at(file, OutputRing::kHead, offset, "output");
  if (!head || head->size() != OutputRing::kHead) return std::nullopt;
  const auto stream = static_cast<unsigned char>((*head)[0]);
  std::size_t size = 0;
  for (unsigned at = 0; at < 4; ++at) {
    size |= std::size_t{static_cast<unsigned char>((*head)[at + 1])} << (8 * at);
  }
  if (stream > static_cast<unsigned char>(Stream::last_) || size > OutputRing::kMostRecord) {
    return std::nullopt;
  }
  auto bytes = os::read_at(file, size, offset + OutputRing::kHead, "output");
  if (!bytes || bytes->size() != size) return std::nullopt;
  return Output{static_cast<Stream>(stream), std::move(*bytes)};
}

base::Status OutputRing::begin_segment() {
  Segment segment;
  segment.number = next_number_;
  segment.first = written_;
  segment.file = TRY(os::openat2(folder_, name_of(segment.number),
                                 O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600, kBeneath));
  segments_.push_back(std::move(segment));
  ++next_number_;
  // Whole segments are kept behind the one that is being written.
  if (segments_.size() > kKept / kSegment + 1) {
    (void)::unlinkat(folder_, name_of(segments_.front().number).c_str(), 0);
    segments_.pop_front();
  }
  return {};
}

base::Status OutputRing::write_record(Stream stream, std::string_view bytes) {
  if (segments_.empty() || gap_ || segments_.back().size >= kSegment) TRY(begin_segment());
  gap_ = false;
  Segment& last = segments_.back();
  const std::string text = record(stream, bytes);
  TRY(os::write_at(last.file.get(), text, last.size, "output"));
  last.size += text.size();
  return {};
}

void OutputRing::append(Stream stream, std::string_view bytes) {
  (stream == Stream::output ? output_bytes_ : error_bytes_) += bytes.size();
  // The next segment's `first` counts what was lost before it, so that readers learn of it there.
  if (!write_record(stream, bytes)) gap_ = true;
  written_ += bytes.size();
}

OutputRing::Next OutputRing::next(Position& position) const {
  Next found;
  for (const Segment& segment : segments_) {
    if (segment.number < position.segment) continue;
    if (segment.number > position.segment || position.offset == 0) {
      if (segment.first > position.bytes) {
        found.lost = segment.first - position.bytes;
        position.bytes = segment.first;
      }
      position.segment = segment.number;
      position.offset = 0;
    }
    if (position.offset >= segment.size) continue;
    found.output = read_record(segment.file.get(), position.offset);
    if (!found.output) return found;
    position.offset += kHead + found.output->bytes.size();
    position.bytes += found.output->bytes.size();
    return found;
  }
  if (gap_ && written_ > position.bytes) {
    found.lost = written_ - position.bytes;
    position.bytes = written_;
  }
  return found;
}

}  // namespace supervisor
