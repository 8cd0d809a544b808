// Lines of journal files: reading them one by one, and what every line of a run's chain must be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/base.h"
#include "journal/journal.h"

namespace journal {

inline constexpr std::size_t kMaxLine = kMaxMembersSupervisor + 16384;

// Reads a file's lines from an offset on, also while it grows.
class Lines {
 public:
  enum class Kind { line, end, unfinished, too_long };

  explicit Lines(base::Fd file, std::string name);
  // The next line without its newline, valid until the next call. `end`: nothing is behind the last
  // newline; `unfinished`: something is, and line() is that. Both may be asked again later.
  [[nodiscard]] base::Result<Kind> next();
  [[nodiscard]] std::string_view line() const { return line_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }  // of the last whole line, from 1
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  base::Fd file_;
  std::string name_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;  // of the file, behind buffer_
  std::string_view line_;
  std::uint64_t number_ = 0;
};

// The name of a run's file with this number: RUN.jsonl, RUN.2.jsonl, …
[[nodiscard]] std::string file_name(std::string_view run, std::uint64_t number);
// The run and number that a name of that form stands for; nullopt for every other name.
struct FileName {
  std::string run;
  std::uint64_t number = 1;
};
[[nodiscard]] std::optional<FileName> parse_file_name(std::string_view name);

}  // namespace journal
