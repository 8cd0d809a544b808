// What a run leaves to read.
#include "cli/report_text.h"

#include <fmt/format.h>

#include <ctime>

namespace cli {
namespace {

std::string ending_json(const supervisor::Ending& ending) {
  return base::JsonObject()
      .add("kind", supervisor::to_string(ending.kind))
      .add("code", ending.code)
      .add("signal", ending.signal)
      .add("by", ending.by)
      .add("step", ending.step)
      .add("errno", ending.error)
      .text();
}

std::string usage_json(const Outcome& outcome) {
  const supervisor::Usage& usage = outcome.usage;
  return base::JsonObject()
      .add("wall_ms", usage.wall_ms)
      .add("cpu_ms", usage.cpu_ms)
      .add("memory_peak_bytes", usage.memory_peak_bytes)
      .add("processes_peak", usage.processes_peak)
      .add("written_bytes", usage.written_bytes)
      .add("stdout_bytes", outcome.stdout_bytes)
      .add("stderr_bytes", outcome.stderr_bytes)
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

// "POST api.test:443 /v1/x", as much of it as there is.
std::string what_was_refused(const journal::Refusal& refusal) {
  std::string text = refusal.method;
  if (!text.empty()) text += " ";
  text += refusal.host;
  if (refusal.port != 0) text += ":" + std::to_string(refusal.port);
  if (!refusal.path.empty()) text += " " + refusal.path;
  return base::printable(text);
}

std::string indented(std::string_view text) {
  std::string out;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!line.empty()) out += "      " + base::printable(line) + "\n";
  }
  return out;
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

std::string report_json(const ReportFacts& facts) {
  const Outcome& outcome = facts.outcome;
  const plan::Plan nothing;
  const plan::Plan& plan = facts.plan == nullptr ? nothing : *facts.plan;
  const journal::Summary& summary = outcome.summary;
  base::JsonObject report;
  report.add("version", 1)
      .add("cerco", kVersion)
      .add("run", plan.run)
      .add("name", facts.name)
      .add("task", plan.policy.task)
      .add("tier", policy::to_string(plan.tier))
      .raw("below_advice", base::json_strings(plan.below_advice))
      .add("started", time_text(facts.started))
      .add("ended", time_text(facts.ended))
      .add("status", outcome.status)
      .raw("ending", ending_json(outcome.ending))
      .raw("usage", usage_json(outcome))
      .raw("limits_hit", base::json_strings(outcome.limits_hit))
      .raw("unheld", base::json_strings(plan.unheld))
      .raw("refused", refused_json(summary))
      .add("alerts", summary.alerts)
      .add("changes", outcome.changes)
      .add("policy_sha256", plan.policy_sha256)
      .raw("journal",
           base::JsonObject().add("events", summary.events).add("head", summary.head).text());
  return report.text() + "\n";
}

std::string refusal_block(const journal::Summary& summary) {
  if (summary.refused.empty()) return {};
  std::string block =
      "cerco: refused (the code inside chose these names; allow only what you know):\n";
  for (const journal::Refusal& refusal : summary.refused) {
    block += fmt::format("  {}x {}: {}\n", refusal.count, base::printable(refusal.kind),
                         what_was_refused(refusal));
    if (!refusal.fix.empty())
      block += "    the narrowest rule that would allow it:\n" + indented(refusal.fix);
  }
  return block;
}

}  // namespace cli
