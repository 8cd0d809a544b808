// What the journal of a run tells of it as a whole, for a report that nobody else can write.
#include <ctime>

#include "journal/event.h"
#include "journal/journal.h"
#include "journal/refusals.h"

namespace journal {

namespace {

constexpr std::size_t kTimeSize = 30;  // 2026-01-02T03:04:05.123456789Z

os::Instant instant_of(const std::string& time) {
  if (time.size() != kTimeSize) return {};
  const auto number = [&](std::size_t at, std::size_t size) {
    return static_cast<int>(base::parse_number(time.substr(at, size)).value_or(0));
  };
  std::tm parts = {};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(5, 2) - 1;
  parts.tm_mday = number(8, 2);
  parts.tm_hour = number(11, 2);
  parts.tm_min = number(14, 2);
  parts.tm_sec = number(17, 2);
  return {::timegm(&parts), number(20, 9)};
}

}  // namespace

base::Result<Past> look_back(const std::string& journal_dir, const std::string& run) {
  Past past;
  Refusals refusals;
  TRY(read(journal_dir, run, {.run = run}, [&](std::string_view line) {
    ++past.summary.events;
    past.summary.head = base::sha256(line);
    const auto members = Members::parse_object(line);
    if (!members) return;
    const std::string type = members->text("type");
    refusals.look({type, *members});
    if (type == "alert" && members->text("action") != "note") ++past.summary.alerts;
    const os::Instant time = instant_of(members->text("time"));
    if (past.summary.events == 1) past.planned = time;
    if (type == "run.started") past.started = time;
    past.last = time;
  }));
  past.summary.refused = refusals.all();
  return past;
}

}  // namespace journal
