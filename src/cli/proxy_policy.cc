// A policy file may be the one of `cerco run`: its keys about the sandbox are named here, not
// passed over.
#include "cli/proxy_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cli {
namespace {

constexpr std::array<std::string_view, 4> kOfSandboxes = {"isolation", "filesystem", "environment",
                                                          "limits"};
// They ask for nothing.
constexpr std::array<std::string_view, 2> kOnlyWords = {"isolation.accept", "limits.not_required"};

// "filesystem.workdir" of "filesystem.workdir.mode"; "" of keys that a proxy carries out.
std::string key_of(std::string_view path) {
  const auto first = path.find('.');
  if (first == std::string_view::npos) return {};
  if (std::ranges::find(kOfSandboxes, path.substr(0, first)) == kOfSandboxes.end()) return {};
  const std::string key(path.substr(0, path.find('.', first + 1)));
  return std::ranges::find(kOnlyWords, key) == kOnlyWords.end() ? key : std::string();
}

// An alert's action that stops processes: there are none here.
std::vector<LeftKey> frozen(const policy::Effective& effective) {
  const policy::Alerts& alerts = effective.policy.alerts;
  const std::array<std::pair<std::string_view, policy::Action>, 5> all = {
      {{"alerts.blocked_range", alerts.blocked_range},
       {"alerts.new_destination", alerts.new_destination},
       {"alerts.placeholder_in_body", alerts.placeholder_in_body},
       {"alerts.placeholder_misuse", alerts.placeholder_misuse},
       {"alerts.request_spike", alerts.request_spike}}};
  std::vector<LeftKey> found;
  for (const auto& [key, action] : all) {
    if (action != policy::Action::freeze) continue;
    const auto origin = effective.origins.find(std::string(key));
    found.push_back({std::string(key), origin == effective.origins.end() ? "" : origin->second});
  }
  return found;
}

}  // namespace

base::Result<std::vector<LeftKey>> left_to_others(const policy::Effective& effective) {
  if (effective.policy.audit.exec == policy::Need::required) {
    const auto origin = effective.origins.find("audit.exec");
    return base::bad_input(origin == effective.origins.end() ? "proxy" : origin->second,
                           "audit.exec is required, and a proxy sees no program start",
                           "expected \"best\", or `cerco run`");
  }
  std::vector<LeftKey> left = frozen(effective);
  for (const auto& [path, origin] : effective.origins) {
    const std::string key = origin == "default" ? std::string() : key_of(path);
    if (!key.empty() && std::ranges::find(left, key, &LeftKey::key) == left.end()) {
      left.push_back({key, origin});
    }
  }
  std::ranges::sort(left, {}, &LeftKey::key);
  return left;
}

std::string left_text(const std::vector<LeftKey>& left) {
  if (left.empty()) return {};
  std::vector<std::string> parts;
  for (const LeftKey& one : left) {
    const bool freezes = one.key.starts_with("alerts.");
    parts.push_back(fmt::format("{}{}{}", one.key,
                                freezes ? " = freeze, which cuts the network" : "",
                                one.origin.empty() ? "" : " (" + one.origin + ")"));
  }
  return "a proxy does not carry out, and leaves to whoever isolates the code: " +
         base::join(parts, ", ");
}

}  // namespace cli
