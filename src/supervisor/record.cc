// The supervisor's own events.
#include "supervisor/record.h"

namespace supervisor {

namespace {

journal::Draft draft(std::string_view type, const base::JsonObject& members) {
  return {std::string(type), members.members(), 0, 0};
}

}  // namespace

journal::Draft run_planned(const plan::Plan& plan) {
  std::vector<std::string> steps;
  steps.reserve(plan.steps.size());
  for (const auto& step : plan.steps) steps.push_back(plan::describe(step));
  base::JsonObject members;
  members.add("name", plan.name)
      .add("tier", policy::to_string(plan.tier))
      .raw("below_advice", base::json_strings(plan.below_advice))
      .raw("unheld", base::json_strings(plan.unheld))
      .add("policy_sha256", plan.policy_sha256)
      .raw("policy", policy::to_json(plan.policy))
      .raw("steps", base::json_strings(steps));
  return draft("run.planned", members);
}

journal::Draft policy_changed(const plan::Plan& plan, const std::vector<std::string>& retired) {
  return draft("policy.changed", base::JsonObject()
                                     .add("revision", plan.policy.revision)
                                     .raw("retired", base::json_strings(retired))
                                     .add("policy_sha256", plan.policy_sha256)
                                     .raw("policy", policy::to_json(plan::in_force(plan))));
}

journal::Draft run_started(const plan::Plan& plan, std::uint32_t host_uid) {
  return draft(
      "run.started",
      base::JsonObject().add("tier", policy::to_string(plan.tier)).add("host_uid", host_uid));
}

journal::Draft command_started(std::uint64_t id, const std::vector<std::string>& argv,
                               const std::string& cwd) {
  const auto shown = policy::without_credentials(argv);
  return draft("command.started", base::JsonObject()
                                      .add("command", id)
                                      .raw("argv", journal::cut_texts(shown))
                                      .add("cwd", journal::cut_text(cwd)));
}

journal::Draft command_ended(std::uint64_t id, bool signalled, std::uint32_t code,
                             std::uint64_t cpu_ms) {
  base::JsonObject members;
  members.add("command", id).add(signalled ? "signal" : "code", code).add("cpu_ms", cpu_ms);
  return draft("command.ended", members);
}

journal::Draft further_ended(std::uint64_t id, const Facts& facts, const Ending& ending) {
  base::JsonObject members;
  members.add("command", id).add("kind", to_string(ending.kind)).add("by", ending.by);
  if (ending.kind == EndingKind::start_failed) {
    members.add("step", ending.step).add("errno", ending.error);
  } else if (facts.command_ended) {
    members.add(facts.signalled ? "signal" : "code", facts.code);
  }
  return draft("command.ended", members.add("cpu_ms", facts.cpu_ms));
}

journal::Draft limit_hit(std::string_view limit) {
  return draft("limit.hit", base::JsonObject().add("limit", limit));
}

journal::Draft containment(const journal::Alarm& alarm) {
  return draft("containment", base::JsonObject()
                                  .add("action", alarm.action)
                                  .add("detector", alarm.detector)
                                  .add("alert", alarm.event)
                                  .add("credential", alarm.credential));
}

journal::Draft operator_action(std::string_view action) {
  return draft("operator.action", base::JsonObject().add("action", action));
}

namespace {

base::JsonObject own_alert(std::string_view detector, std::string_view text) {
  return base::JsonObject()
      .add("detector", detector)
      .add("severity", "high")
      .raw("evidence", "[]")
      .add("action", "alert")
      .add("text", text);
}

}  // namespace

journal::Draft broke_protocol() {
  return draft("alert", own_alert("broke_protocol",
                                  "what came from inside in cerco-init's place is nothing that "
                                  "cerco-init says; the sandbox was ended"));
}

journal::Draft part_lost(std::string_view who) {
  return draft(
      "alert",
      own_alert("part_lost", std::string(who) + " ended before the run; what it served is refused")
          .add("part", who));
}

journal::Draft left_over(const base::Error& error) {
  return draft("alert", own_alert("left_over", error.line()));
}

journal::Draft refusals_dropped(std::string_view of, std::uint64_t count) {
  return draft("events.dropped",
               base::JsonObject().add("of", of).add("count", count).add("why", "log rate limit"));
}

journal::Draft run_ended(const Ending& ending, std::uint32_t status, const Usage& usage,
                         const std::vector<std::string>& limits_hit) {
  base::JsonObject end;
  end.add("kind", to_string(ending.kind))
      .add("code", ending.code)
      .add("signal", ending.signal)
      .add("by", ending.by);
  base::JsonObject used;
  used.add("wall_ms", usage.wall_ms)
      .add("cpu_ms", usage.cpu_ms)
      .add("memory_peak_bytes", usage.memory_peak_bytes)
      .add("processes_peak", usage.processes_peak)
      .add("written_bytes", usage.written_bytes);
  return draft("run.ended", base::JsonObject()
                                .raw("ending", end.text())
                                .add("status", status)
                                .raw("usage", used.text())
                                .raw("limits_hit", base::json_strings(limits_hit)));
}

}  // namespace supervisor
