// Looks for what was asked for and nothing else; a value that could be meant in two ways is none.
#include "http/members.h"

#include <algorithm>

#include "base/base.h"
#include "http/json_members.h"

namespace http {
namespace {

struct Named {
  std::string_view text;
  char character;
};
constexpr Named kNamed[] = {
    {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

std::optional<std::string> xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.front() != '&') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const auto named = std::ranges::find_if(
        kNamed, [text](const Named& one) { return text.starts_with(one.text); });
    if (named == std::end(kNamed)) return std::nullopt;
    out += named->character;
    text.remove_prefix(named->text.size());
  }
  return out;
}

}  // namespace

std::optional<std::string> json_value(std::string_view text, std::string_view path) {
  const auto dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  auto members = json_members(text);
  if (!members || std::ranges::count(*members, name, &JsonMember::name) != 1) return std::nullopt;
  JsonMember& found = *std::ranges::find(*members, name, &JsonMember::name);
  if (dot != std::string_view::npos) {
    return text[found.at] == '{'
               ? json_value(text.substr(found.at, found.size), path.substr(dot + 1))
               : std::nullopt;
  }
  const char first = text[found.at];
  if (first == '{' || first == '[' || first == 'n') return std::nullopt;
  return std::move(found.value);
}

std::optional<std::string> xml_value(std::string_view text, std::string_view name) {
  const std::string open = "<" + std::string(name) + ">";
  const std::string close = "</" + std::string(name) + ">";
  const auto from = text.find(open);
  if (from == std::string_view::npos) return std::nullopt;
  const auto to = text.find('<', from + open.size());
  if (to == std::string_view::npos || text.substr(to, close.size()) != close) return std::nullopt;
  if (text.find(open, to) != std::string_view::npos) return std::nullopt;
  return xml_text(text.substr(from + open.size(), to - from - open.size()));
}

}  // namespace http
