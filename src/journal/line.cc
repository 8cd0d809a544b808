// Lines of growing files.
#include "journal/line.h"

#include "os/os.h"

namespace journal {

Lines::Lines(base::Fd file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

base::Result<Lines::Kind> Lines::next() {
  constexpr std::size_t kChunk = std::size_t{256} * 1024;
  std::size_t looked = at_;
  while (true) {
    if (const std::size_t end = buffer_.find('\n', looked); end != std::string::npos) {
      line_ = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      ++number_;
      return line_.size() > kMaxLine ? Kind::too_long : Kind::line;
    }
    if (buffer_.size() - at_ > kMaxLine) return Kind::too_long;
    buffer_.erase(0, at_);
    at_ = 0;
    looked = buffer_.size();
    const std::string more = TRY(os::read_at(file_.get(), kChunk, offset_, name_));
    if (more.empty()) {
      line_ = buffer_;
      return buffer_.empty() ? Kind::end : Kind::unfinished;
    }
    offset_ += more.size();
    buffer_ += more;
  }
}

std::string file_name(std::string_view run, std::uint64_t number) {
  return std::string(run) + (number == 1 ? "" : "." + std::to_string(number)) + ".jsonl";
}

std::optional<FileName> parse_file_name(std::string_view name) {
  constexpr std::string_view kEnding = ".jsonl";
  if (!name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const auto parts = base::split(name, '.');
  FileName result{std::string(parts[0]), 1};
  if (parts.size() > 2 || parts[0].size() != 12) return std::nullopt;
  for (char c : parts[0]) {
    if (!((c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'))) return std::nullopt;
  }
  if (parts.size() == 2) {
    const auto number = base::parse_number(parts[1]);
    if (!number || *number < 2) return std::nullopt;
    result.number = *number;
  }
  return result;
}

}  // namespace journal
