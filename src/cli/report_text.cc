// What a run leaves to read.
#include "cli/report_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "supervisor/run_report.h"

namespace cli {
namespace {

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

std::string report_json(const ReportFacts& facts) {
  const Outcome& outcome = facts.outcome;
  const plan::Plan nothing;
  const plan::Plan& plan = facts.plan == nullptr ? nothing : *facts.plan;
  return supervisor::report_json({.version = std::string(kVersion),
                                  .run = plan.run,
                                  .name = facts.name,
                                  .task = plan.policy.task,
                                  .tier = std::string(policy::to_string(plan.tier)),
                                  .below_advice = plan.below_advice,
                                  .unheld = plan.unheld,
                                  .policy_sha256 = plan.policy_sha256,
                                  .started = facts.started,
                                  .ended = facts.ended,
                                  .status = static_cast<std::uint32_t>(outcome.status),
                                  .ending = outcome.ending,
                                  .usage = outcome.usage,
                                  .stdout_bytes = outcome.stdout_bytes,
                                  .stderr_bytes = outcome.stderr_bytes,
                                  .changes = outcome.changes,
                                  .limits_hit = outcome.limits_hit,
                                  .summary = outcome.summary});
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
  if (std::ranges::any_of(summary.refused, [](const auto& one) { return one.kind == "range"; })) {
    block +=
        "  range: the address lies where egress stays closed; cerco log shows it\n"
        "    (`addresses` or `cidr` of a rule opens a private one)\n";
  }
  return block;
}

std::string run_in(std::string_view report) {
  static constexpr std::string_view kMember = "\"run\":\"";
  const auto at = report.find(kMember);
  if (at == std::string_view::npos) return {};
  const auto from = at + kMember.size();
  return std::string(report.substr(from, report.find('"', from) - from));
}

}  // namespace cli
