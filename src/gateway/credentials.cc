// Placeholders are judged before anything is dialled; the secret comes after the upstream's
// certificate was verified, and goes out with the next write.
#include "gateway/credentials.h"

#include <algorithm>

namespace gateway {
namespace {

// Header fields that servers commonly take a key from. Beside an injected secret another account's
// key must not decide whose request it is (N172).
constexpr std::string_view kKeyHeaders[] = {
    "authorization", "x-api-key",      "api-key",       "apikey",    "x-goog-api-key",
    "x-auth-token",  "x-access-token", "private-token", "job-token", "x-amz-security-token",
    "cookie"};

http::Slot slot_of(const policy::Inject& inject) {
  if (inject.kind == policy::InjectKind::header) {
    return http::header_slot(inject.header, inject.format);
  }
  http::Slot slot;
  slot.basic = true;
  slot.user = inject.user;
  return slot;
}

std::string where_of(const http::Finding& finding) {
  switch (finding.where) {
    case http::Where::bound:
    case http::Where::header:
      return "header " + finding.field;
    case http::Where::basic:
      return "basic " + finding.field;
    case http::Where::url:
      return "url";
  }
  return {};
}

int strictness(policy::Own own) {
  return own == policy::Own::refuse ? 2 : own == policy::Own::strip ? 1 : 0;
}

}  // namespace

Credentials::Credentials(const plan::Plan& plan, std::unique_ptr<LeaseDesk> desk)
    : plan_(plan), desk_(std::move(desk)), keys_(std::begin(kKeyHeaders), std::end(kKeyHeaders)) {
  const auto& credentials = plan.policy.credentials;
  for (const auto& credential : credentials) {
    slots_.push_back(slot_of(credential.inject));
    keys_.insert(slots_.back().header);
  }
  for (const plan::Placeholder& placeholder : plan.placeholders) {
    const auto found =
        std::ranges::find(credentials, placeholder.credential, &policy::Credential::name);
    if (found == credentials.end()) continue;
    const auto index = static_cast<std::size_t>(found - credentials.begin());
    marked_.push_back({.placeholder = placeholder.value, .slot = slots_[index]});
    credential_of_.push_back(index);
  }
}

bool Credentials::binds() const {
  return plan_.protections.contains(plan::Protection::binding);
}

const std::string& Credentials::name_of_mark(std::size_t mark) const {
  return plan_.policy.credentials[credential_of_[mark]].name;
}

std::vector<std::string> Credentials::header_names() const {
  std::vector<std::string> names;
  names.reserve(slots_.size());
  for (const http::Slot& slot : slots_) names.push_back(slot.header);
  return names;
}

Handling Credentials::handle(const http::RequestHead& head, const policy::Request& request,
                             const policy::Egress* rule) const {
  Handling handling;
  if (!marked_.empty()) {
    for (const http::Finding& finding : http::find_placeholders(head, marked_)) {
      if (!judge_finding(finding, request, handling)) return handling;
    }
  }
  for (std::size_t i = 0; i < plan_.policy.credentials.size(); ++i) {
    const policy::Credential& credential = plan_.policy.credentials[i];
    const bool there = std::ranges::find(handling.injections, i, &Injection::credential) !=
                       handling.injections.end();
    if (credential.require || there || !policy::covers(credential, request)) continue;
    handling.injections.push_back({.credential = i, .placeholder = {}});
  }
  if (!judge_own(head, request, rule, handling)) return handling;
  // A server cuts its frames where it likes, so that no secret can be taken out of them.
  if (head.websocket && plan_.protections.contains(plan::Protection::redaction)) {
    handling.reason = "credential-websocket";
    return handling;
  }
  if (handling.credential.empty() && !handling.injections.empty()) {
    handling.credential = plan_.policy.credentials[handling.injections.front().credential].name;
  }
  return handling;
}

// Whether the request may go on, with this placeholder where it is.
bool Credentials::judge_finding(const http::Finding& finding, const policy::Request& request,
                                Handling& handling) const {
  const std::size_t index = credential_of_[finding.marked];
  const policy::Credential& credential = plan_.policy.credentials[index];
  handling.credential = credential.name;
  handling.where = where_of(finding);
  if (revoked_.contains(credential.name) || revoked_.contains("")) {
    handling.reason = "credential-revoked";
    return false;
  }
  const bool bound = finding.where == http::Where::bound;
  if (bound && (!binds() || policy::covers(credential, request))) {
    handling.injections.push_back(
        {.credential = index, .placeholder = marked_[finding.marked].placeholder});
    return true;
  }
  handling.misuse = true;
  handling.reason = bound ? "credential-binding" : "credential-place";
  return false;
}

// What to do with keys that the agent brought itself, in whatever field a server may take one from:
// at bound places as the credentials say, the strictest of them first; else as the rule says.
bool Credentials::judge_own(const http::RequestHead& head, const policy::Request& request,
                            const policy::Egress* rule, Handling& handling) const {
  std::set<std::string, std::less<>> ours;
  for (const Injection& injection : handling.injections) {
    if (!injection.placeholder.empty()) ours.insert(slots_[injection.credential].header);
  }
  const Owned owned = owned_at(request, rule);
  handling.drop_cookies = !owned.credential.empty() && owned.own != policy::Own::pass;
  if (owned.own == policy::Own::pass) return true;
  for (const std::string& name : keys_) {
    if (ours.contains(name) || http::find_field(head.fields, name) == nullptr) continue;
    if (owned.own == policy::Own::strip) {
      handling.strip.push_back(name);
      continue;
    }
    handling.reason = "own-credential";
    handling.credential = owned.credential;
    return false;
  }
  return true;
}

Credentials::Owned Credentials::owned_at(const policy::Request& request,
                                         const policy::Egress* rule) const {
  std::optional<Owned> bound;
  for (const policy::Credential& credential : plan_.policy.credentials) {
    if (!policy::covers(credential, request)) continue;
    if (!bound || strictness(credential.own) > strictness(bound->own)) {
      bound = {.own = credential.own, .credential = credential.name};
    }
  }
  if (bound) return *bound;
  return {.own = rule != nullptr ? rule->own : policy::Own::pass, .credential = {}};
}

asio::awaitable<base::Result<std::string>> Credentials::inject(Connection& connection,
                                                               http::RequestHead& head,
                                                               policy::Request request,
                                                               Handling handling,
                                                               bool verified_tls) {
  for (const Injection& injection : handling.injections) {
    const std::string& name = plan_.policy.credentials[injection.credential].name;
    if (revoked_.contains(name) || revoked_.contains("")) co_return "credential-revoked";
    if (!desk_) co_return base::fail(base::Kind::peer, "broker", "is not there", {});
    plan::LeaseAnswer answer =
        CO_TRY(co_await desk_->ask(connection, {.credential = name,
                                                .host = request.host.name,
                                                .port = request.port,
                                                .method = request.method,
                                                .path = request.path,
                                                .verified_tls = verified_tls,
                                                .placeholder = injection.placeholder}));
    // A secret with a line break would write header fields of its own (N111, CWE-113).
    std::string refusal = answer.refusal.empty() ? "" : "credential-" + answer.refusal;
    if (refusal.empty() && (base::has_control(answer.value) || answer.header.empty())) {
      refusal = "credential-value";
    }
    base::Status remembered;
    if (refusal.empty()) {
      http::set_field(head.fields, answer.header, answer.value);
      remembered = remember(injection.credential, injection.placeholder, answer);
      connection.credentials.push_back(name);
    }
    base::wipe(answer.value);
    base::wipe(answer.secret);
    CO_TRY(remembered);  // what cannot be taken out of the answer is not sent
    if (!refusal.empty()) co_return refusal;
  }
  co_return std::string();
}

base::Status Credentials::remember(std::size_t credential, const std::string& placeholder,
                                   const plan::LeaseAnswer& answer) {
  if (!plan_.protections.contains(plan::Protection::redaction)) return {};
  if (answer.secret.size() < http::kLeastRedacted) return {};
  std::pair known(credential, base::sha256(answer.secret));
  if (remembered_.contains(known)) return {};
  std::string shown = placeholder;
  if (shown.empty()) {
    const auto mark = std::ranges::find(credential_of_, credential);
    shown = mark == credential_of_.end()
                ? "[credential]"
                : marked_[static_cast<std::size_t>(mark - credential_of_.begin())].placeholder;
  }
  redactions_.push_back(std::make_unique<http::Redaction>(
      TRY(http::Redaction::of(answer.secret, shown, slots_[credential]))));
  remembered_.insert(std::move(known));
  return {};
}

void Credentials::revoke(const std::string& name) {
  revoked_.insert(name);
}

}  // namespace gateway
