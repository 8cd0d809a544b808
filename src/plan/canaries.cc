// Canaries: credentials that open nothing, where whoever goes through a home looks for some.
#include <fmt/format.h>

#include <algorithm>

#include "plan/parts.h"

namespace plan {
namespace {

// Neither programs nor people use them by themselves: profiles, hosts and users that nothing names.
constexpr std::string_view kAws = "/home/agent/.aws/credentials";
constexpr std::string_view kGit = "/home/agent/.git-credentials";
constexpr std::string_view kNetrc = "/home/agent/.netrc";
constexpr std::string_view kNpm = "/home/agent/.npmrc";

constexpr std::size_t kKey = 16;      // of an AKIA id
constexpr std::size_t kSecret = 40;   // of AWS, and of a password
constexpr std::size_t kToken = 36;    // of ghp_ and npm_
constexpr std::size_t kLeast = kKey;  // 5 bits each

// Letters of both cases, as real ones have them.
std::string mixed(std::size_t count, const std::function<std::string(std::size_t)>& random) {
  std::string text = random(count);
  const std::string coin = random(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (coin[i] < 'n') text[i] = base::to_upper(text.substr(i, 1))[0];
  }
  return text;
}

bool is_random(std::string_view text) {
  return text.size() >= kLeast && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '2' && c <= '7');
         });
}

std::string without(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) ? std::string(text.substr(prefix.size())) : std::string();
}

bool well_formed(const Canary& canary) {
  if (canary.kind == "aws")
    return is_random(without(canary.id, "AKIA")) && is_random(canary.secret);
  if (!canary.id.empty()) return false;
  if (canary.kind == "github") return is_random(without(canary.secret, "ghp_"));
  if (canary.kind == "npm") return is_random(without(canary.secret, "npm_"));
  return canary.kind == "netrc" && is_random(canary.secret);
}

}  // namespace

std::vector<Canary> make_canaries(const policy::Policy& policy,
                                  const std::function<std::string(std::size_t)>& random) {
  std::vector<Canary> canaries;
  for (const std::string& kind : policy.filesystem.canaries) {
    Canary canary{.kind = kind, .id = {}, .secret = {}};
    if (kind == "aws") canary.id = "AKIA" + base::to_upper(random(kKey));
    if (kind == "github") canary.secret = "ghp_";
    if (kind == "npm") canary.secret = "npm_";
    canary.secret += mixed(canary.secret.empty() ? kSecret : kToken, random);
    canaries.push_back(std::move(canary));
  }
  return canaries;
}

std::map<std::string, std::string> canary_files(const std::vector<Canary>& canaries) {
  std::map<std::string, std::string> files;
  for (const Canary& canary : canaries) {
    if (canary.kind == "aws") {
      files.emplace(kAws, fmt::format("[deploy-production]\naws_access_key_id = {}\n"
                                      "aws_secret_access_key = {}\n",
                                      canary.id, canary.secret));
    } else if (canary.kind == "github") {
      files.emplace(kGit, fmt::format("https://deploy-bot:{}@github.com\n", canary.secret));
    } else if (canary.kind == "netrc") {
      files.emplace(kNetrc, fmt::format("machine artifacts.internal\nlogin deploy\npassword {}\n",
                                        canary.secret));
    } else if (canary.kind == "npm") {
      files.emplace(kNpm, fmt::format("//registry.internal/:_authToken={}\n", canary.secret));
    }
  }
  return files;
}

base::Status check_canaries(const Plan& plan) {
  const auto& wanted = plan.policy.filesystem.canaries;
  const bool same = std::ranges::equal(plan.canaries, wanted, {}, &Canary::kind);
  if (!same || !std::ranges::all_of(plan.canaries, well_formed)) {
    return refuse("other canaries than filesystem.canaries", "the plan as make gives it");
  }
  for (const auto& [path, content] : canary_files(plan.canaries)) {
    const WriteFile file_wanted{path, content, kCanaryMode};
    const bool planted = std::ranges::any_of(plan.steps, [&file_wanted](const Step& step) {
      const auto* file = std::get_if<WriteFile>(&step);
      return file != nullptr && *file == file_wanted;
    });
    if (!planted) return refuse(fmt::format("the canary {} is not planted", path), "a WriteFile");
  }
  return {};
}

}  // namespace plan
