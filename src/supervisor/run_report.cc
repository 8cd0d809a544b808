// The report of a run or of one command of it.
#include "supervisor/run_report.h"

#include <fmt/format.h>

#include <ctime>

namespace supervisor {

namespace {

std::string ending_json(const Ending& ending) {
  return base::JsonObject()
      .add("kind", to_string(ending.kind))
      .add("code", ending.code)
      .add("signal", ending.signal)
      .add("by", ending.by)
      .add("step", ending.step)
      .add("errno", ending.error)
      .text();
}

std::string usage_json(const RunReport& report) {
  const Usage& usage = report.usage;
  return base::JsonObject()
      .add("wall_ms", usage.wall_ms)
      .add("cpu_ms", usage.cpu_ms)
      .add("memory_peak_bytes", usage.memory_peak_bytes)
      .add("processes_peak", usage.processes_peak)
      .add("written_bytes", usage.written_bytes)
      .add("stdout_bytes", report.stdout_bytes)
      .add("stderr_bytes", report.stderr_bytes)
      .text();
}

std::string refused_json(const journal::Summary& summary) {
  std::vector<std::string> all;
  for (const journal::Refusal& refusal : summary.refused) {
    all.push_back(base::JsonObject()
                      .add("kind", refusal.kind)
                      .add("host", refusal.host)
                      .add("port", refusal.port)
                      .add("method", refusal.method)
                      .add("path", refusal.path)
                      .add("count", refusal.count)
                      .add("rule", refusal.rule)
                      .raw("fix", refusal.fix.empty() ? "null" : base::json_string(refusal.fix))
                      .text());
  }
  return base::json_array(all);
}

std::uint64_t milliseconds_between(os::Instant first, os::Instant last) {
  const std::int64_t ms =
      (last.seconds - first.seconds) * 1000 + (last.nanoseconds - first.nanoseconds) / 1'000'000;
  return ms < 0 ? 0 : static_cast<std::uint64_t>(ms);
}

}  // namespace

std::string time_text(os::Instant instant) {
  const std::time_t seconds = instant.seconds;
  std::tm parts = {};
  (void)::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     instant.nanoseconds / 1'000'000);
}

std::string report_json(const RunReport& report) {
  base::JsonObject json;
  json.add("version", 1)
      .add("cerco", report.version)
      .add("run", report.run)
      .add("name", report.name)
      .add("task", report.task)
      .add("tier", report.tier)
      .raw("below_advice", base::json_strings(report.below_advice))
      .add("started", time_text(report.started))
      .add("ended", time_text(report.ended))
      .add("status", report.status)
      .raw("ending", ending_json(report.ending))
      .raw("usage", usage_json(report))
      .raw("limits_hit", base::json_strings(report.limits_hit))
      .raw("unheld", base::json_strings(report.unheld))
      .raw("refused", refused_json(report.summary))
      .add("alerts", report.summary.alerts)
      .add("changes", report.changes)
      .add("policy_sha256", report.policy_sha256)
      .raw("journal", base::JsonObject()
                          .add("events", report.summary.events)
                          .add("head", report.summary.head)
                          .text());
  return json.text() + "\n";
}

RunReport report_of(const LiveRun& run, std::string_view version) {
  RunReport report;
  report.version = version;
  report.run = run.run;
  report.name = run.name;
  report.task = run.task;
  report.tier = run.tier;
  report.below_advice = run.below_advice;
  report.unheld = run.unheld;
  report.policy_sha256 = run.policy_sha256;
  return report;
}

RunReport lost_report(const LiveRun& run, std::string_view version, journal::Past past) {
  RunReport report = report_of(run, version);
  report.started = {static_cast<std::int64_t>(run.started), 0};
  report.ended = report.started;  // nobody saw when
  if (past.summary.events > 0) {
    report.started = past.planned;
    report.ended = past.last;
  }
  if (past.started != os::Instant{}) {
    report.usage.wall_ms = milliseconds_between(past.started, past.last);
  }
  report.summary = std::move(past.summary);
  report.status = 128 + 9;
  report.ending.kind = EndingKind::killed;
  report.ending.by = "host";
  return report;
}

}  // namespace supervisor
