// Six detectors over egress and credential events.
#include "journal/detectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace journal {
namespace {

constexpr std::string_view kDecision = "egress.decision";

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Refusals of a lease that say nothing about intent: the placeholder was in its place.
bool mere_end_of_lease(std::string_view reason) {
  return one_of(reason, {"expired", "uses", "revoked", "tls", "broker"});
}

}  // namespace

const std::map<std::string, std::string>& Detectors::defaults() {
  static const std::map<std::string, std::string> actions = {
      {"blocked_range", "alert"},      {"new_destination", "note"},     {"request_spike", "alert"},
      {"placeholder_misuse", "alert"}, {"placeholder_in_body", "note"}, {"canary", "alert"}};
  return actions;
}

bool Detectors::acts(std::string_view action) {
  return one_of(action, {"freeze", "revoke", "cut-network", "kill"});
}

Detectors::Detectors(const std::map<std::string, std::string>& actions, TaskMemory memory)
    : actions_(defaults()), memory_(std::move(memory)) {
  act_as(actions);
}

void Detectors::act_as(const std::map<std::string, std::string>& actions) {
  for (const auto& [detector, action] : actions) actions_[detector] = action;
}

std::vector<Finding> Detectors::look(const Event& event, const os::Instant& steady) {
  Findings findings;
  if (event.type == kDecision) {
    blocked_range(event, findings);
    new_destination(event, findings);
    request_spike(event, steady, findings);
  }
  placeholder(event, findings);
  return findings;
}

void Detectors::finish() {
  if (in_window_ > 0) {
    ++windows_;
    requests_ += in_window_;
    in_window_ = 0;
  }
  memory_.learn_windows(windows_, requests_);
}

void Detectors::name(Findings& findings, Finding finding, const std::string& subject) {
  std::set<std::string>& subjects = named_[finding.detector];
  if (subjects.size() > kMostSubjects || subjects.contains(subject)) return;
  subjects.insert(subject);
  if (subjects.size() > kMostSubjects) {
    finding.text = fmt::format("more than {}; further ones are not named. Last: {}", kMostSubjects,
                               finding.text);
  }
  findings.push_back(std::move(finding));
}

void Detectors::blocked_range(const Event& event, Findings& findings) {
  if (event.members.raw("verdict") == R"("allow")") return;
  if (event.members.raw("kind") != R"("range")" && event.members.raw("reason") != R"("range")")
    return;
  const std::string reason = event.members.text("reason");
  std::string address = event.members.text("address");
  if (address.empty()) address = event.members.text("host");
  name(findings,
       {"blocked_range", reason == "metadata" ? "high" : "medium", actions_["blocked_range"],
        fmt::format("attempt at {} ({}), which no rule opens", destination(event.members), reason),
        ""},
       address);
}

void Detectors::new_destination(const Event& event, Findings& findings) {
  if (!one_of(event.members.raw("verdict"), {R"("allow")", R"("audit")"})) return;
  const std::string where = destination(event.members);
  if (memory_.knows(where)) return;
  memory_.learn_destination(where);
  const bool first = memory_.first_run();
  name(findings,
       {"new_destination", first ? "informational" : "low",
        first ? "note" : actions_["new_destination"],
        fmt::format("{} has not been used by this task before", where), ""},
       where);
}

void Detectors::request_spike(const Event& event, const os::Instant& steady, Findings& findings) {
  const std::int64_t window = steady.seconds / kWindowSeconds;
  if (window != window_) {
    if (in_window_ > 0) {
      ++windows_;
      requests_ += in_window_;
    }
    window_ = window;
    in_window_ = 0;
  }
  in_window_ += times(event.members);
  const std::uint64_t windows = windows_ + memory_.windows();
  const std::uint64_t requests = requests_ + memory_.requests();
  const bool known = windows >= kEnoughWindows;
  // Compared without division: in_window > times * requests / windows.
  const bool spike = known
                         ? in_window_ > kSpikeFloor && in_window_ * windows > kSpikeTimes * requests
                         : in_window_ > kSpikeFloorUnknown;
  if (!spike) return;
  const std::string usual = known ? fmt::format("about {} is usual", requests / windows)
                                  : std::string("nothing is known of what is usual");
  name(findings,
       {"request_spike", "medium", actions_["request_spike"],
        fmt::format("{} requests within {} s; {}", in_window_, kWindowSeconds, usual), ""},
       std::to_string(window));
}

void Detectors::placeholder(const Event& event, Findings& findings) {
  const Members& members = event.members;
  const std::string credential = members.text("credential");
  const std::string reason = members.text("reason");
  // In a body it passes as it is: the gateway says so with this reason, or with a member of its
  // own.
  const bool noted = members.has("placeholder_in_body");
  if (noted || (event.type == "credential.refused" && reason == "placeholder_in_body")) {
    const std::string which = noted ? members.text("placeholder_in_body") : credential;
    name(
        findings,
        {"placeholder_in_body", "low", actions_["placeholder_in_body"],
         fmt::format("the placeholder of {} went out in a body to {}", which, destination(members)),
         which},
        which + " " + destination(members));
    return;
  }
  if (event.type != "credential.refused" || mere_end_of_lease(reason)) return;
  if (reason == "canary") return canary(members, findings);
  name(findings,
       {"placeholder_misuse", "high", actions_["placeholder_misuse"],
        fmt::format("the placeholder of {} was sent to {} {} {}: {}", credential,
                    destination(members), members.text("method"), members.text("path"), reason),
        credential},
       credential + " " + destination(members) + " " + reason);
}

// Nobody has a use for a canary: whoever shows one has looked for credentials and means to use them
// or to carry them off.
void Detectors::canary(const Members& members, Findings& findings) {
  const std::string credential = members.text("credential");
  name(findings,
       {"canary", "critical", actions_["canary"],
        fmt::format("{}, which opens nothing, was sent to {} ({})", credential,
                    destination(members), members.text("where")),
        ""},
       credential + " " + destination(members));
}

}  // namespace journal
