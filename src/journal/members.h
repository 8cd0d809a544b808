// Reads the members of one JSON object as views: the form of a Draft and of a journal line.
//
// Strict (RFC 8259 and less): keys are [a-z0-9_]{1,64} without escapes and appear once; strings are
// valid UTF-8; an integer's magnitude is below 2^53; nesting ends at kMaxDepth, members at
// kMaxCount.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace journal {

class Members {
 public:
  static constexpr std::size_t kMaxCount = 64;
  static constexpr int kMaxDepth = 32;

  struct Member {
    std::string_view key;
    std::string_view value;  // JSON text
  };

  // `text` is members without braces ("" has none) and must outlive the result. bad_input names
  // what does not fit, without quoting any of it.
  [[nodiscard]] static base::Result<Members> parse(std::string_view text);
  // The same for a whole object in braces without space around them.
  [[nodiscard]] static base::Result<Members> parse_object(std::string_view text);

  [[nodiscard]] bool has(std::string_view key) const { return !raw(key).empty(); }
  // The value's JSON text, "" when there is no such member.
  [[nodiscard]] std::string_view raw(std::string_view key) const;
  // The value of a string, decoded; "" when there is none or it is no string.
  [[nodiscard]] std::string text(std::string_view key) const;
  // An integer that is not negative; nullopt else.
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view key) const;
  [[nodiscard]] const std::vector<Member>& all() const { return members_; }

 private:
  std::vector<Member> members_;
};

// The characters of a JSON string (quotes included) that Members has accepted. Lone surrogates
// become U+FFFD.
[[nodiscard]] std::string decode_string(std::string_view json);

}  // namespace journal
