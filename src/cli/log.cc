// `cerco log`, `log show`, `log verify`: the journal for people and programs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/cli.h"
#include "journal/journal.h"
#include "os/os.h"

namespace cli {
namespace {

std::string journal_dir(const World& world) {
  return world.state_dir + "/journal";
}

// Seconds of "90s", "10m", "2h", "7d".
std::optional<std::int64_t> seconds_of(std::string_view text) {
  static constexpr std::array<std::pair<char, std::int64_t>, 4> kUnits = {
      {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}}};
  static constexpr std::uint64_t kMost = 100'000'000;
  if (text.size() < 2) return std::nullopt;
  const auto number = base::parse_number(text.substr(0, text.size() - 1));
  const auto unit = std::ranges::find(kUnits, text.back(), &std::pair<char, std::int64_t>::first);
  if (!number || *number > kMost || unit == kUnits.end()) return std::nullopt;
  return static_cast<std::int64_t>(*number) * unit->second;
}

// Whether text is the start of a time as the journal writes it, at least its day.
bool is_time(std::string_view text) {
  static constexpr std::string_view kForm = "0000-00-00T00:00:00.000000000";
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() < 10 || text.size() > kForm.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

base::Result<std::string> since(const std::string& text) {
  if (const auto seconds = seconds_of(text)) {
    os::Instant then = os::wall_time();
    then.seconds -= *seconds;
    return journal::time_text(then);
  }
  if (!is_time(text)) {
    return base::bad_input("log: --since", "`" + base::printable(text) + "` is no time",
                           "expected 90s, 10m, 2h, 7d or a time like 2026-01-02T03:04:05Z");
  }
  // Without its Z it sorts before every finer time that it stands for.
  return text.ends_with('Z') ? text.substr(0, text.size() - 1) : text;
}

base::Result<journal::Filter> filter_of(const World& world, const Parsed& parsed) {
  journal::Filter filter;
  if (const auto run = parsed.value("--run")) filter.run = TRY(find_journal(world, *run));
  filter.type = parsed.value("--type").value_or("");
  filter.host = base::to_lower(parsed.value("--host").value_or(""));
  filter.verdict = parsed.value("--verdict").value_or("");
  if (const auto text = parsed.value("--since")) filter.since = TRY(since(*text));
  static constexpr std::array<std::string_view, 4> kVerdicts = {"allow", "deny", "reject", "audit"};
  if (!filter.verdict.empty() && std::ranges::find(kVerdicts, filter.verdict) == kVerdicts.end()) {
    const std::string near = base::closest(filter.verdict, kVerdicts);
    return base::bad_input("log: --verdict",
                           "unknown verdict `" + base::printable(filter.verdict) + "`" +
                               (near.empty() ? "" : " (did you mean " + near + ")"),
                           "expected allow, deny, reject or audit");
  }
  const auto types = journal::event_types();
  if (filter.type.empty() || std::ranges::find(types, filter.type) != types.end()) return filter;
  const std::string near = base::closest(filter.type, types);
  return base::bad_input(
      "log: --type",
      "unknown type `" + base::printable(filter.type) + "`" +
          (near.empty() ? "" : " (did you mean " + near + ")"),
      "expected one of " + base::join(std::vector<std::string>(types.begin(), types.end()), ", "));
}

std::string_view colour_of(journal::Tone tone) {
  switch (tone) {
    case journal::Tone::alert:
      return "\x1b[1;35m";
    case journal::Tone::refused:
      return "\x1b[31m";
    case journal::Tone::audit:
      return "\x1b[33m";
    case journal::Tone::allowed:
      return "\x1b[32m";
    case journal::Tone::plain:
      break;
  }
  return {};
}

// One event as it is printed, newline included.
std::string shown(const World& world, bool json, std::string_view line) {
  if (json) return std::string(line) + "\n";
  const std::string text = journal::describe(line);
  const std::string_view colour = world.colour ? colour_of(journal::tone(line)) : "";
  return colour.empty() ? text + "\n" : fmt::format("{}{}\x1b[0m\n", colour, text);
}

// Collects output so that many short lines cost one write.
class Output {
 public:
  explicit Output(const World& world) : world_(world) {}
  void add(std::string_view text) {
    waiting_ += text;
    if (waiting_.size() > 60'000) flush();
  }
  void flush() {
    if (waiting_.empty()) return;
    open_ = open_ && os::write_all(world_.out, waiting_, "standard output").has_value();
    waiting_.clear();
  }
  // Whether anyone still reads.
  [[nodiscard]] bool open() const { return open_; }

 private:
  const World& world_;
  std::string waiting_;
  bool open_ = true;
};

}  // namespace

base::Result<int> log(const World& world, const Parsed& parsed) {
  TRY(want_words("log", parsed, 0, "[-f] [--run R --type T --since D --host H --verdict V]"));
  const journal::Filter filter = TRY(filter_of(world, parsed));
  const bool json = parsed.has("--json");
  Output output(world);
  if (parsed.has("--follow")) {
    TRY(os::make_folders(journal_dir(world),
                         0700));  // before the first run there is nothing to watch
    TRY(journal::follow(journal_dir(world), filter.run, filter, [&](std::string_view line) {
      output.add(shown(world, json, line));
      output.flush();
      return output.open();
    }));
    return 0;
  }
  std::vector<std::string> runs = {filter.run};
  if (filter.run.empty()) runs = TRY(journal::runs(journal_dir(world)));
  for (const std::string& run : runs) {
    TRY(journal::read(journal_dir(world), run, filter,
                      [&](std::string_view line) { output.add(shown(world, json, line)); }));
  }
  output.flush();
  return 0;
}

base::Result<int> log_show(const World& world, const Parsed& parsed) {
  TRY(want_words("log show", parsed, 1, "ID"));
  std::string id = parsed.words[0];
  // RUN of RUN:NUMBER may be a name or the start of an id, as everywhere.
  const std::size_t colon = id.rfind(':');
  const std::string run = id.substr(0, colon);
  const bool numbered = colon != std::string::npos && base::parse_number(id.substr(colon + 1));
  if (numbered && run != "host" && !is_run_id(run)) {
    id = TRY(find_journal(world, run)) + id.substr(colon);
  }
  const std::string line = TRY(journal::event(journal_dir(world), id));
  print(world, parsed.has("--json") ? line + "\n" : journal::describe_whole(line));
  return 0;
}

base::Result<int> log_verify(const World& world, const Parsed& parsed) {
  TRY(want_words("log verify", parsed, 0, "[--run RUN] [--key FILE] [--head HEX]"));
  std::string run;
  if (const auto text = parsed.value("--run")) run = TRY(find_journal(world, *text));
  const auto key = parsed.value("--key");
  if (key && !os::read_file(*key, std::size_t{64} * 1024)) {
    return base::bad_input("log verify: --key", "`" + base::printable(*key) + "` cannot be read",
                           "expected the file of a public key");
  }
  const std::string head = base::to_lower(parsed.value("--head").value_or(""));
  const bool is_hash =
      head.size() == 64 && head.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (parsed.has("--head") && !is_hash) {
    return base::bad_input("log verify: --head", "`" + base::printable(head) + "` is no head",
                           "expected 64 hexadecimal digits");
  }
  const journal::Verification checked =
      TRY(journal::verify(world.state_dir, run, key.value_or(""), head));
  if (parsed.has("--json")) {
    base::JsonObject object;
    object.add("holds", checked.holds).add("events", checked.events);
    object.add("checkpoints", checked.checkpoints).add("problem", checked.problem);
    if (!run.empty()) object.add("run", run).add("head", checked.head);
    print(world, object.raw("notes", base::json_strings(checked.notes)).text() + "\n");
    return checked.holds ? 0 : 1;
  }
  for (const std::string& note : checked.notes) print(world, base::printable(note) + "\n");
  if (!checked.holds) {
    print(world, "TAMPERED: " + base::printable(checked.problem) + "\n");
    return 1;
  }
  print(world, fmt::format("holds: {} events, {} checkpoints{}\n", checked.events,
                           checked.checkpoints, run.empty() ? "" : ", head " + checked.head));
  return 0;
}

}  // namespace cli
