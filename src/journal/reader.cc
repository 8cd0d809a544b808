// Reading journals back: which runs there are, which events match, and what comes while one looks.
#include <algorithm>
#include <map>

#include "journal/follow.h"
#include "journal/line.h"
#include "journal/members.h"
#include "journal/open_file.h"
#include "os/os.h"

namespace journal {
namespace {

bool type_matches(std::string_view wanted, std::string_view type) {
  return wanted.empty() || type == wanted || (wanted.ends_with('.') && type.starts_with(wanted));
}

// When the run's first line was written, "" for an empty file.
base::Result<std::string> begin_of(const std::string& path) {
  auto file = open_file(path, path);
  if (!file && is_strange(file.error())) return std::string();
  Lines lines(TRY(std::move(file)), path);
  if (TRY(lines.next()) != Lines::Kind::line) return std::string();
  const auto members = Members::parse_object(lines.line());
  return members ? members->text("time") : std::string();
}

base::Error no_run(const std::string& run) {
  return {base::Kind::not_found, 0, run, "no such run in the journal", {}};
}

}  // namespace

bool matches(const Filter& filter, std::string_view line) {
  if (filter.type.empty() && filter.host.empty() && filter.verdict.empty() && filter.since.empty())
    return true;
  const auto members = Members::parse_object(line);
  if (!members) return false;
  return type_matches(filter.type, members->text("type")) &&
         (filter.host.empty() || members->text("host") == filter.host) &&
         (filter.verdict.empty() || members->text("verdict") == filter.verdict) &&
         (filter.since.empty() || members->text("time") >= filter.since);
}

base::Status read(const std::string& journal_dir, const std::string& run, const Filter& filter,
                  const std::function<void(std::string_view line)>& line) {
  for (std::uint64_t number = 1;; ++number) {
    const std::string name = file_name(run, number);
    auto file = open_file(journal_dir + "/" + name, name);
    if (!file && file.error().number == ENOENT) {
      if (number == 1) return std::unexpected(no_run(run));
      return {};
    }
    if (!file) return std::unexpected(std::move(file).error());
    Lines lines(std::move(*file), name);
    while (TRY(lines.next()) == Lines::Kind::line) {
      if (matches(filter, lines.line())) line(lines.line());
    }
  }
}

base::Result<std::vector<std::string>> runs(const std::string& journal_dir) {
  std::vector<std::pair<std::string, std::string>> found;  // begin, run
  auto names = os::list_folder(journal_dir);
  if (!names && names.error().number == ENOENT) return std::vector<std::string>();
  for (const std::string& name : TRY(std::move(names))) {
    const auto parsed = parse_file_name(name);
    if (!parsed || parsed->number != 1) continue;
    found.emplace_back(TRY(begin_of(journal_dir + "/" + name)), parsed->run);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> result;
  for (auto& [begin, run] : found) result.push_back(std::move(run));
  return result;
}

base::Result<std::string> event(const std::string& journal_dir, const std::string& id) {
  const std::size_t colon = id.find(':');
  const auto seq = base::parse_number(std::string_view(id).substr(std::min(id.size(), colon + 1)));
  const std::string run = id.substr(0, std::min(colon, id.size()));
  if (colon == std::string::npos || !seq || !parse_file_name(run + ".jsonl")) {
    return base::bad_input(id, "no event id", "expected RUN:NUMBER, as cerco log prints it");
  }
  const std::string start = "{\"v\":1,\"seq\":" + std::to_string(*seq) + ",";
  std::string found;
  TRY(read(journal_dir, run, {}, [&](std::string_view line) {
    if (found.empty() && line.starts_with(start)) found = line;
  }));
  if (found.empty()) return base::fail(base::Kind::not_found, id, "no such event", {});
  return found;
}

}  // namespace journal
