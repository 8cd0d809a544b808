// How the RUN of a command line is found.
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/cli.h"
#include "journal/journal.h"
#include "os/os.h"
#include "supervisor/run_folder.h"

namespace cli {
namespace {

constexpr std::size_t kIdSize = 12;

// The label of a run, "" when it has none. Of one that has ended it stands near the start of the
// report that we wrote, after values that hold no quotes.
std::string label(const World& world, const std::string& id) {
  if (const auto live = supervisor::look_at_run(world.state_dir, id)) return live->run.name;
  static constexpr std::size_t kHead = 512;
  static constexpr std::string_view kMember = ",\"name\":\"";
  const auto fd = os::open(world.state_dir + "/runs/" + id + "/report.json", O_RDONLY, 0);
  if (!fd) return {};
  const std::string head = os::read_some(fd->get(), kHead, id).value_or("");
  const std::size_t at = head.find(kMember);
  if (at == std::string::npos) return {};
  const std::size_t start = at + kMember.size();
  return head.substr(start, head.find('"', start) - start);
}

// A name is free again at the end of its run: of several the one that lives, else the last to end.
std::string latest(const World& world, const std::vector<std::string>& ids) {
  std::string found;
  std::filesystem::file_time_type last;
  for (const std::string& id : ids) {
    const auto live = supervisor::look_at_run(world.state_dir, id);
    if (live && live->alive) return id;
    std::error_code error;
    const auto time = std::filesystem::last_write_time(
        world.state_dir + "/runs/" + id + "/" + supervisor::kReportFile, error);
    if (found.empty() || (!error && time > last)) {
      found = id;
      last = time;
    }
  }
  return found;
}

}  // namespace

bool is_run_id(std::string_view text) {
  return text.size() == kIdSize && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7');
         });
}

base::Result<std::vector<std::string>> run_ids(const World& world) {
  auto names = os::list_folder(world.state_dir + "/runs");
  if (!names && names.error().number == ENOENT) return std::vector<std::string>();
  if (!names) return names;
  std::erase_if(*names, [](const std::string& name) { return !is_run_id(name); });
  return names;
}

base::Result<KnownRun> find_run(const World& world, std::string_view text) {
  std::vector<std::string> by_prefix;
  std::vector<std::string> by_name;
  for (const std::string& id : TRY(run_ids(world))) {
    if (label(world, id) == text && !text.empty()) by_name.push_back(id);
    if (!text.empty() && id.starts_with(text)) by_prefix.push_back(id);
  }
  if (!by_name.empty()) return KnownRun{latest(world, by_name), std::string(text)};
  if (by_prefix.size() == 1) return KnownRun{by_prefix[0], label(world, by_prefix[0])};
  if (by_prefix.size() > 1) {
    return base::fail(base::Kind::not_found, base::printable(text), "several runs start so",
                      "expected one of " + base::join(by_prefix, ", "));
  }
  return base::fail(base::Kind::not_found, base::printable(text), "no such run",
                    "cerco ps -a lists all");
}

base::Result<std::string> find_journal(const World& world, const std::string& text) {
  const auto known = find_run(world, text);
  if (known) return known->id;
  std::vector<std::string> by_prefix;
  for (const std::string& run : TRY(journal::runs(world.state_dir + "/journal"))) {
    if (!text.empty() && run.starts_with(text)) by_prefix.push_back(run);
  }
  if (by_prefix.size() == 1) return by_prefix[0];
  return std::unexpected(known.error());
}

}  // namespace cli
