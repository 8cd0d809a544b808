// One reader for the line forms that pip, npm, go, git and cargo share.
#include "host/settings.h"

#include <algorithm>

namespace host {
namespace {

constexpr std::string_view kSpace = " \t\r";

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

std::string unquoted(std::string text) {
  const bool quoted =
      text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::vector<Setting> read_settings(std::string_view text, bool folds) {
  std::vector<Setting> all;
  std::string section;
  for (const std::string_view raw : base::split(text, '\n')) {
    const std::string line = trimmed(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (folds && kSpace.contains(raw[0]) && !all.empty() && all.back().section == section) {
      all.back().value += " " + line;
      continue;
    }
    if (line[0] == '[' && line.back() == ']') {
      section = trimmed(std::string_view(line).substr(1, line.size() - 2));
      continue;
    }
    const auto equals = line.find('=');
    const auto at = equals == std::string::npos ? line.find(':') : equals;
    if (at == std::string::npos) continue;
    std::string key = base::to_lower(trimmed(std::string_view(line).substr(0, at)));
    std::ranges::replace(key, '_', '-');
    all.push_back({section, unquoted(std::move(key)),
                   unquoted(trimmed(std::string_view(line).substr(at + 1)))});
  }
  return all;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : std::string(text) + ' ') {
    if (c == '\n' || kSpace.contains(c)) {
      if (!word.empty()) words.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  }
  return words;
}

std::string plain_url(std::string_view text) {
  const auto colon = text.find("://");
  if (colon == std::string_view::npos) return {};
  const std::string scheme = base::to_lower(text.substr(0, colon));
  if (scheme != "http" && scheme != "https") return {};
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find_first_of("?#"));
  const auto slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (const auto user = authority.rfind('@'); user != std::string_view::npos)
    authority.remove_prefix(user + 1);
  if (authority.empty()) return {};
  return scheme + "://" + std::string(authority) +
         (slash == std::string_view::npos ? "/" : std::string(rest.substr(slash)));
}

std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const auto start = text.find(before);
  if (start == std::string_view::npos) return {};
  const std::string_view rest = text.substr(start + before.size());
  const auto end = rest.find(after);
  return end == std::string_view::npos ? std::string() : std::string(rest.substr(0, end));
}

std::unexpected<base::Error> no_index(std::string_view tool, std::string expected) {
  return base::fail(base::Kind::missing, "preset " + std::string(tool), "no index is configured",
                    std::move(expected));
}

void add_index(Indexes& indexes, std::string_view url, const std::string& from) {
  Index index = {plain_url(url), from};
  const bool known =
      std::ranges::any_of(indexes.all, [&](const Index& other) { return other.url == index.url; });
  if (!index.url.empty() && !known) indexes.all.push_back(std::move(index));
}

}  // namespace host
