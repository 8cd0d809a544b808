// The whole way from text to a policy: read, override, understand, check.
#include "policy/presets.h"
#include "policy/reader.h"

namespace policy {
namespace {

// What is hidden wherever a host folder comes in.
const std::vector<std::string> kHidden = {"**/.env",    "**/.env.*",     "**/.npmrc",
                                          "**/.netrc",  "**/.pypirc",    "**/.git-credentials",
                                          "**/id_rsa*", "**/id_ed25519*"};

bool is_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

}  // namespace

Policy defaults(const HostSize& host) {
  Policy policy;
  policy.filesystem.hide = kHidden;
  if (host.cpus_milli != 0)
    policy.limits.cpus_milli = std::min(policy.limits.cpus_milli, host.cpus_milli);
  if (host.memory != 0) policy.limits.memory = std::min(policy.limits.memory, host.memory / 2);
  return policy;
}

namespace {

// What is not said stays as it is in `policy`.
base::Result<Effective> parse_over(Policy policy, std::string_view text, std::string_view file,
                                   std::span<const Override> overrides,
                                   const PresetSource& presets) {
  if (text.size() > kMaxText) {
    return base::bad_input(place_text(file, {}), "the policy is larger than 1 MiB",
                           "expected less");
  }
  Node root = TRY(is_json(text) ? read_json(text, file) : read_toml(text, file));
  TRY(apply_overrides(root, overrides));
  if (presets) TRY(expand_presets(root, file, presets));
  Reading reading;
  reading.file = file;
  TRY(read_policy({reading, root, ""}, policy));
  TRY(check_rules(reading, policy));
  TRY(check_bindings(reading, policy));
  return Effective{std::move(policy), std::move(reading.origins), std::move(reading.warnings)};
}

}  // namespace

base::Result<Effective> parse(std::string_view text, std::string_view file,
                              std::span<const Override> overrides, const HostSize& host,
                              const PresetSource& presets) {
  return parse_over(defaults(host), text, file, overrides, presets);
}

base::Result<Effective> parse_change(std::string_view text, std::string_view file,
                                     const Policy& running, const PresetSource& presets) {
  const Policy fresh;
  Policy policy = running;
  policy.network.fallback = fresh.network.fallback;
  policy.network.mode = fresh.network.mode;
  policy.alerts = fresh.alerts;
  policy.egress.clear();
  policy.deny.clear();
  policy.credentials.clear();
  return parse_over(std::move(policy), text, file, {}, presets);
}

base::Result<Effective> parse(std::string_view text, std::string_view file,
                              std::span<const Override> overrides, const HostSize& host) {
  return parse(text, file, overrides, host, {});
}

}  // namespace policy
