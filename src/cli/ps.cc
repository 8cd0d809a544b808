// `cerco ps`: the runs that live, and with -a those that have ended.
#include <fmt/format.h>

#include <algorithm>

#include "cli/living.h"
#include "journal/members.h"
#include "os/os.h"
#include "supervisor/run_report.h"

namespace cli {
namespace {

constexpr std::size_t kMostReport = std::size_t{1} << 20;
constexpr std::size_t kMostCommand = 60;

struct Row {
  std::string run;
  std::string name;
  std::string state;    // "running", "ended", "lost"
  std::string kind;     // of a living one
  std::string started;  // RFC 3339
  std::string ending;   // of one that has ended
  std::int64_t status = -1;
  std::vector<std::string> argv;
};

std::string_view kind_name(supervisor::RunKind kind) {
  switch (kind) {
    case supervisor::RunKind::attached:
      return "attached";
    case supervisor::RunKind::detached:
      return "detached";
    case supervisor::RunKind::session:
      return "session";
  }
  return "attached";
}

Row row_of(const supervisor::FoundRun& found) {
  const supervisor::LiveRun& run = found.run;
  return {.run = run.run,
          .name = run.name,
          .state = found.alive ? "running" : "lost",
          .kind = std::string(kind_name(run.kind)),
          .started = supervisor::time_text({static_cast<std::int64_t>(run.started), 0}),
          .argv = run.argv};
}

// nullopt for what is no report of ours.
std::optional<Row> row_of_report(const World& world, const std::string& id) {
  const auto text =
      os::read_file(world.state_dir + "/runs/" + id + "/" + supervisor::kReportFile, kMostReport);
  if (!text) return std::nullopt;
  const std::string_view line = std::string_view(*text).substr(0, text->find('\n'));
  const auto report = journal::Members::parse_object(line);
  if (!report) return std::nullopt;
  const auto ending = journal::Members::parse_object(report->raw("ending"));
  return Row{.run = id,
             .name = report->text("name"),
             .state = "ended",
             .kind = {},
             .started = report->text("started"),
             .ending = ending ? ending->text("kind") : "",
             .status = static_cast<std::int64_t>(report->number("status").value_or(0)),
             .argv = {}};
}

std::string json_of(const Row& row) {
  base::JsonObject json;
  json.add("run", row.run).add("name", row.name).add("state", row.state);
  if (!row.kind.empty()) json.add("kind", row.kind);
  json.add("started", row.started);
  if (row.state != "ended") json.raw("argv", base::json_strings(row.argv));
  if (row.state == "ended") json.add("ending", row.ending).add("status", row.status);
  return json.text();
}

std::string line_of(const Row& row) {
  std::string what = row.state == "ended" ? fmt::format("{} ({})", row.ending, row.status)
                                          : base::printable(base::join(row.argv, " "));
  if (what.size() > kMostCommand) what = what.substr(0, kMostCommand) + "…";
  return fmt::format("{:<12}  {:<16}  {:<8}  {:<8}  {:<24}  {}\n", row.run,
                     row.name.empty() ? "-" : row.name, row.state,
                     row.kind.empty() ? "-" : row.kind, row.started, what);
}

}  // namespace

base::Result<int> ps(const World& world, const Parsed& parsed) {
  TRY(want_words("ps", parsed, 0, "[-a]"));
  std::vector<Row> rows;
  for (const std::string& id : TRY(run_ids(world))) {
    const auto found = supervisor::look_at_run(world.state_dir, id);
    if (found && (found->alive || parsed.has("--all"))) {
      rows.push_back(row_of(*found));
    } else if (!found && parsed.has("--all")) {
      if (auto row = row_of_report(world, id)) rows.push_back(std::move(*row));
    }
  }
  std::ranges::sort(rows, {}, &Row::started);
  if (parsed.has("--json")) {
    std::vector<std::string> all;
    for (const Row& row : rows) all.push_back(json_of(row));
    print(world, base::json_array(all) + "\n");
    return 0;
  }
  std::string text = fmt::format("{:<12}  {:<16}  {:<8}  {:<8}  {:<24}  {}\n", "RUN", "NAME",
                                 "STATE", "KIND", "STARTED", "COMMAND OR ENDING");
  for (const Row& row : rows) text += line_of(row);
  print(world, text);
  return 0;
}

}  // namespace cli
