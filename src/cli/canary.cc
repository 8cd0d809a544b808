// The canary: what is planted, what runs inside, and how the outcome is read. Nothing here acts.
#include "cli/canary.h"

#include <fmt/format.h>

#include <algorithm>

namespace cli {
namespace {

constexpr std::string_view kCredential = "cerco-canary";
constexpr std::string_view kVariable = "CERCO_CANARY";
constexpr std::string_view kScript = R"(
say() { printf 'CANARY %s\n' "$*"; }
say began
env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'
for file in {folder}/.env {folder}/id_rsa {outside}; do
  if [ -s "$file" ] && cat "$file"; then say read "$file"; fi
done 2>/dev/null
[ -r {folder}/plain ] && say plain
ask() {
  exec 3<>/dev/tcp/{host}/{port} || { say answer "$1" none; return; }
  printf 'GET %s HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n' "$1" "$CERCO_CANARY" >&3
  read -r -t 3 line <&3
  say answer "$1" "${line:-silence}"
  exec 3>&-
}
ask /canary/bound
ask /elsewhere
opens() { if (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; then say open "$1"; fi; }
opens 169.254.169.254 80
opens cerco-canary.invalid {port}
say ended
)";

std::string with(std::string text, std::string_view name, std::string_view value) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
    text.replace(at, name.size(), value);
    at += value.size();
  }
  return text;
}

bool says(const CanarySeen& seen, std::string_view words) {
  return seen.inside.contains(fmt::format("CANARY {}\n", words));
}

// What the script was answered for a path, "" where it did not say.
std::string answer_for(const CanarySeen& seen, std::string_view path) {
  const std::string begin = fmt::format("CANARY answer {} ", path);
  const auto at = seen.inside.find(begin);
  if (at == std::string::npos) return {};
  const auto from = at + begin.size();
  return seen.inside.substr(from, seen.inside.find_first_of("\r\n", from) - from);
}

CanaryFinding finding(std::string name, bool good, std::string what) {
  return {std::move(name), good, good ? std::string() : std::move(what)};
}

}  // namespace

policy::Policy canary_policy(policy::Policy policy, const CanaryPlan& plan) {
  const std::string host(policy::kHostName);
  std::erase_if(policy.egress, [&](const policy::Egress& rule) {
    return rule.host == host || rule.tcp.starts_with(host + ":");
  });
  std::erase_if(policy.deny, [&](const policy::Deny& deny) { return deny.host == host; });
  policy::Egress rule;
  rule.name = kCredential;
  rule.host = host;
  rule.ports = {plan.port};
  rule.methods = {"GET"};
  rule.inspects = true;
  policy.egress.push_back(std::move(rule));
  policy::Credential credential;
  credential.name = kCredential;
  credential.source = {
      .kind = policy::SourceKind::env, .name = std::string(kVariable), .command = {}};
  credential.hosts = {host};
  credential.ports = {plan.port};
  credential.methods = {"GET"};
  credential.paths = {"/canary/**"};
  credential.inject.format = "Bearer {secret}";
  credential.env = {{std::string(kVariable), "secret"}};
  policy.credentials = {std::move(credential)};
  policy.filesystem.read_only.push_back(plan.folder);
  return policy;
}

std::string canary_script(const CanaryPlan& plan) {
  std::string script(kScript);
  script = with(std::move(script), "{folder}", plan.folder);
  script = with(std::move(script), "{outside}", plan.outside);
  script = with(std::move(script), "{host}", policy::kHostName);
  return with(std::move(script), "{port}", std::to_string(plan.port));
}

std::vector<CanaryFinding> canary_findings(const CanaryPlan& plan, const CanarySeen& seen) {
  const auto sent = [&](std::string_view path, std::string_view text) {
    return std::ranges::any_of(seen.requests, [&](const std::string& request) {
      return request.starts_with(fmt::format("GET {} ", path)) && request.contains(text);
    });
  };
  const std::string elsewhere = answer_for(seen, "/elsewhere");
  std::vector<CanaryFinding> all;
  all.push_back(finding("the run begins and ends", says(seen, "began") && says(seen, "ended"),
                        fmt::format("status {}", seen.status)));
  // What was never looked for is not known to be safe.
  const bool looked = all.front().good;
  all.push_back(finding("a planted secret is nowhere inside",
                        looked && !seen.inside.contains(plan.secret), "it was read inside"));
  all.push_back(finding("planted key files are empty inside, the file beside them is there",
                        looked && says(seen, "plain") && !seen.inside.contains("CANARY read "),
                        "a hidden file was read, or the folder did not come in"));
  all.push_back(finding("the placeholder is inside",
                        looked && seen.inside.contains(std::string(kVariable) + "="),
                        "the variable is not set"));
  all.push_back(finding("the gateway puts the secret where it belongs",
                        sent("/canary/bound", plan.secret),
                        "answered " + answer_for(seen, "/canary/bound")));
  all.push_back(finding("and refuses it elsewhere",
                        !sent("/elsewhere", plan.secret) && elsewhere.starts_with("HTTP/1.1 403"),
                        "answered " + elsewhere));
  all.push_back(finding("the metadata address is refused",
                        looked && !says(seen, "open 169.254.169.254"), "a connection opened"));
  all.push_back(finding("a name that no rule has is refused",
                        looked && !says(seen, "open cerco-canary.invalid"), "a connection opened"));
  all.push_back(
      finding("the journal verifies, tells of the use, and has no secret in it",
              seen.verified && seen.journal.contains("\"credential.used\"") &&
                  !seen.journal.contains(plan.secret),
              seen.verified ? "an event is missing or says too much" : "it does not verify"));
  return all;
}

}  // namespace cli
