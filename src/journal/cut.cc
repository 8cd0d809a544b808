// Long texts: their beginning, their length, and a hash by which the whole can be known again.
#include "journal/cut.h"

#include <fmt/format.h>

#include "journal/journal.h"

namespace journal {
namespace {

constexpr std::size_t kMostTexts = 64;  // of one list
constexpr std::size_t kMostListBytes = std::size_t{16} * 1024;

std::size_t whole_characters(std::string_view text, std::size_t most) {
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

// The escaped form is never shorter than the text.
bool is_long(std::string_view json) {
  return json.starts_with('"') && json.size() > kMostText + 2 &&
         decode_string(json).size() > kMostText;
}

}  // namespace

std::string cut_text(std::string_view text) {
  if (text.size() <= kMostText) return std::string(text);
  return fmt::format("{}…[{} bytes, sha256 {}]", text.substr(0, whole_characters(text, kMostText)),
                     text.size(), base::sha256(text));
}

std::string cut_texts(std::span<const std::string> texts) {
  std::vector<std::string> kept;
  std::size_t bytes = 0;
  for (const std::string& text : texts) {
    std::string piece = cut_text(text);
    bytes += piece.size();
    if (kept.size() == kMostTexts || bytes > kMostListBytes) break;
    kept.push_back(std::move(piece));
  }
  if (kept.size() < texts.size()) {
    std::string rest;
    for (const std::string& text : texts.subspan(kept.size())) rest += text + '\0';
    kept.push_back(
        fmt::format("…[{} more, sha256 {}]", texts.size() - kept.size(), base::sha256(rest)));
  }
  return base::json_strings(kept);
}

bool has_long_text(const Members& members) {
  for (const Members::Member& member : members.all()) {
    if (is_long(member.value)) return true;
  }
  return false;
}

std::string without_long_texts(const Members& members) {
  base::JsonObject object;
  for (const Members::Member& member : members.all()) {
    if (!is_long(member.value)) {
      object.raw(member.key, member.value);
    } else if (member.key != "fix") {
      object.add(member.key, cut_text(decode_string(member.value)));
    }
  }
  return object.members();
}

}  // namespace journal
