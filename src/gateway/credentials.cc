// Placeholders are judged before anything is dialled; the secret comes after the upstream's
// certificate was verified, and goes out with the next write.
#include "gateway/credentials.h"

#include <algorithm>

#include "gateway/signing.h"
#include "gateway/token_endpoints.h"

namespace gateway {
namespace {

// Header fields that servers commonly take a key from. Beside an injected secret another account's
// key must not decide whose request it is (N172).
constexpr std::string_view kKeyHeaders[] = {
    "authorization", "x-api-key",      "api-key",       "apikey",    "x-goog-api-key",
    "x-auth-token",  "x-access-token", "private-token", "job-token", "x-amz-security-token",
    "cookie"};

// And parameters: signatures in the query are whole credentials.
constexpr std::string_view kKeyParameters[] = {
    "key",        "api_key",         "apikey",           "api-key", "access_token",
    "auth_token", "x-amz-signature", "x-goog-signature", "sig"};

constexpr std::string_view kSessionHeader = "x-amz-security-token";

http::Slot slot_for(const policy::Inject& inject) {
  http::Slot slot = http::header_slot(inject.header, inject.format);
  slot.user = inject.user;
  slot.name = inject.field;
  slot.segment = inject.segment;
  switch (inject.kind) {
    case policy::InjectKind::header:
      slot.place = http::Place::header;
      break;
    case policy::InjectKind::basic:
      slot.place = http::Place::basic;
      slot.header = "authorization";
      break;
    case policy::InjectKind::query:
      slot.place = http::Place::query;
      break;
    case policy::InjectKind::path:
      slot.place = http::Place::path;
      break;
    case policy::InjectKind::body:
      slot.place = http::Place::body;
      break;
    case policy::InjectKind::mtls:
    case policy::InjectKind::postgres:
      slot.place = http::Place::none;
      break;
    case policy::InjectKind::sigv4:
      slot.place = http::Place::sigv4;
      slot.header = "authorization";
      break;
  }
  return slot;
}

bool in_header(const http::Slot& slot) {
  return slot.place == http::Place::header || slot.place == http::Place::basic ||
         slot.place == http::Place::sigv4;
}

// Where the placeholder of one value of a credential stands.
http::Slot slot_of_field(const http::Slot& slot, const std::string& field) {
  if (slot.place != http::Place::sigv4 || field == policy::kAccessKey) return slot;
  if (field == policy::kSessionToken) return http::header_slot(kSessionHeader, "{secret}");
  http::Slot nowhere;
  nowhere.place = http::Place::none;
  return nowhere;
}

std::string where_of(const http::Finding& finding) {
  switch (finding.where) {
    case http::Where::bound:
      return finding.field.empty() ? "url" : "header " + finding.field;
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
    : plan_(plan),
      desk_(std::move(desk)),
      keys_(std::begin(kKeyHeaders), std::end(kKeyHeaders)),
      parameters_(std::begin(kKeyParameters), std::end(kKeyParameters)) {
  const auto& credentials = plan.policy.credentials;
  for (const auto& credential : credentials) {
    slots_.push_back(slot_for(credential.inject));
    const http::Slot& slot = slots_.back();
    if (in_header(slot)) keys_.insert(slot.header);
    if (slot.place == http::Place::query) parameters_.insert(base::to_lower(slot.name));
  }
  for (const plan::Placeholder& placeholder : plan.placeholders) {
    const auto found =
        std::ranges::find(credentials, placeholder.credential, &policy::Credential::name);
    if (found == credentials.end()) continue;
    const auto index = static_cast<std::size_t>(found - credentials.begin());
    marked_.push_back({.placeholder = placeholder.value,
                       .slot = slot_of_field(slots_[index], placeholder.field)});
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
  for (const http::Slot& slot : slots_) {
    if (in_header(slot)) names.push_back(slot.header);
    if (slot.place == http::Place::sigv4) names.emplace_back(kSessionHeader);
  }
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
    if (there || !policy::covers(credential, request)) continue;
    if (slots_[i].place == http::Place::body) {
      if (head.body.framing != http::Framing::none) handling.bodies.push_back(i);
    } else if (!credential.require) {
      handling.injections.push_back({.credential = i, .placeholder = {}});
    }
  }
  if (!judge_signatures(head, handling)) return handling;
  if (!judge_own(head, request, rule, handling)) return handling;
  if (!judge_keys(request, handling)) return handling;
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
  if (revoked(credential.name)) {
    handling.reason = "credential-revoked";
    return false;
  }
  const bool bound = finding.where == http::Where::bound;
  if (bound && (!binds() || policy::covers(credential, request))) {
    // A session's token is written anew beside the signature that its placeholder came with.
    const bool beside = slots_[index].place == http::Place::sigv4 &&
                        marked_[finding.marked].slot.place != http::Place::sigv4;
    if (!beside) {
      handling.injections.push_back(
          {.credential = index, .placeholder = marked_[finding.marked].placeholder});
    }
    return true;
  }
  handling.misuse = true;
  handling.reason = bound ? "credential-binding" : "credential-place";
  return false;
}

// Whether every signature can be made again as it was meant; without one no value of its may stand
// in the request.
bool Credentials::judge_signatures(const http::RequestHead& head, Handling& handling) const {
  const auto refuse = [&](std::size_t index, const char* reason) {
    handling.credential = plan_.policy.credentials[index].name;
    handling.reason = reason;
    return false;
  };
  for (std::size_t mark = 0; mark < marked_.size(); ++mark) {
    const std::size_t index = credential_of_[mark];
    if (slots_[index].place != http::Place::sigv4) continue;
    const bool signs = std::ranges::find(handling.injections, index, &Injection::credential) !=
                       handling.injections.end();
    const http::Field* token = http::find_field(head.fields, kSessionHeader);
    if (signs || token == nullptr || token->value != marked_[mark].placeholder) continue;
    handling.misuse = true;
    handling.where = "header " + std::string(kSessionHeader);
    return refuse(index, "credential-place");
  }
  for (const Injection& injection : handling.injections) {
    const std::size_t index = injection.credential;
    if (slots_[index].place != http::Place::sigv4) continue;
    const policy::Inject& inject = plan_.policy.credentials[index].inject;
    const http::Field* signature = http::find_field(head.fields, slots_[index].header);
    const auto claim = signature == nullptr ? std::nullopt : http::sigv4_claim(signature->value);
    if (!claim || claim->id != injection.placeholder) return refuse(index, "credential-place");
    if (claim->scope.region != inject.region || claim->scope.service != inject.service) {
      return refuse(index, "credential-scope");
    }
    if (asks_for_keys(head)) return refuse(index, "credential-hands-out-keys");
    const Payload payload = payload_of(head);
    if (payload == Payload::streaming) return refuse(index, "credential-streaming");
    if (payload == Payload::unknown) return refuse(index, "credential-payload");
    if (payload == Payload::to_hash) handling.bodies.push_back(index);
  }
  return true;
}

// Where new keys are handed out, a credential goes only if its binding names that place: the answer
// would be a key that no binding covers (N166, N175, N176).
bool Credentials::judge_keys(const policy::Request& request, Handling& handling) const {
  if (!hands_out_keys(request.path)) return true;
  const auto refused = [&](std::size_t index) {
    const policy::Credential& credential = plan_.policy.credentials[index];
    if (names_path(credential, request.path)) return false;
    handling.credential = credential.name;
    handling.reason = "credential-hands-out-keys";
    return true;
  };
  return !plan_.protections.contains(plan::Protection::binding) ||
         std::ranges::none_of(handling.injections, refused, &Injection::credential);
}

// What to do with keys that the agent brought itself, in whatever field a server may take one from:
// at bound places as the credentials say, the strictest of them first; else as the rule says.
bool Credentials::judge_own(const http::RequestHead& head, const policy::Request& request,
                            const policy::Egress* rule, Handling& handling) const {
  std::set<std::string, std::less<>> ours;
  for (const Injection& injection : handling.injections) {
    const http::Slot& slot = slots_[injection.credential];
    if (!injection.placeholder.empty() && in_header(slot)) ours.insert(slot.header);
    if (slot.place == http::Place::sigv4) ours.emplace(kSessionHeader);
  }
  const Owned owned = owned_at(request, rule);
  handling.drop_cookies = !owned.credential.empty() && owned.own != policy::Own::pass;
  if (owned.own == policy::Own::pass) return true;
  const bool stripped = owned.own == policy::Own::strip;
  bool any = false;
  for (const std::string& name : keys_) {
    if (ours.contains(name) || http::find_field(head.fields, name) == nullptr) continue;
    handling.strip.push_back(name);
    any = true;
  }
  handling.strip_query = target_without_own(head) != head.target;
  if ((!any && !handling.strip_query) || stripped) return true;
  handling.reason = "own-credential";
  handling.credential = owned.credential;
  return false;
}

// Whether that parameter is the place of a credential, and the value what its placeholder makes.
bool Credentials::fills_parameter(std::string_view name, std::string_view value) const {
  return std::ranges::any_of(marked_, [&](const http::Marked& marked) {
    return marked.slot.place == http::Place::query && marked.slot.name == name &&
           value == http::render(marked.slot, marked.placeholder);
  });
}

std::string Credentials::target_without_own(const http::RequestHead& head) const {
  const std::string_view query = http::query_of(head);
  if (query.empty()) return head.target;
  return http::with_query(
      head.target,
      http::form_with_some(query, [this](std::string_view name, std::string_view value) {
        return !parameters_.contains(base::to_lower(name)) || fills_parameter(name, value);
      }));
}

void Credentials::strip(http::RequestHead& head, const Handling& handling) const {
  for (const std::string& name : handling.strip) http::remove_fields(head.fields, name);
  if (handling.strip_query) head.target = target_without_own(head);
}

// --- In a body ---------------------------------------------------------------------------------

void Credentials::handle_body(const http::RequestHead& head, const policy::Request& request,
                              std::string_view body, Handling& handling) const {
  const http::Fields kind = http::fields_of(head);
  for (const std::size_t index : handling.bodies) {
    if (slots_[index].place == http::Place::sigv4) continue;  // it is only hashed
    const policy::Credential& credential = plan_.policy.credentials[index];
    const auto values = http::field_values(kind, body, slots_[index].name);
    if (values) {
      if (!judge_field(index, *values, handling)) return;
    } else if (!credential.require) {
      handling.credential = credential.name;
      handling.reason = "credential-body";  // it wants the secret, and has no place for it
      return;
    }
  }
  (void)judge_keys(request, handling);
}

// Whether the request may go on, with these values in the credential's field.
bool Credentials::judge_field(std::size_t credential, const std::vector<std::string>& values,
                              Handling& handling) const {
  const policy::Credential& bound = plan_.policy.credentials[credential];
  std::string placeholder;
  bool own = false;
  for (const std::string& value : values) {
    const auto mark = std::ranges::find_if(marked_, [&](const http::Marked& marked) {
      return credential_of_[static_cast<std::size_t>(&marked - marked_.data())] == credential &&
             http::render(marked.slot, marked.placeholder) == value;
    });
    if (mark == marked_.end()) {
      own = true;
    } else {
      placeholder = mark->placeholder;
    }
  }
  if (placeholder.empty() && bound.require && !own) return true;
  if (handling.credential.empty()) handling.credential = bound.name;
  if (!placeholder.empty() && revoked(bound.name)) {
    handling.reason = "credential-revoked";
    return false;
  }
  if (own && bound.own != policy::Own::pass) {
    // A body of the agent's own is not taken apart: what would be stripped is refused.
    handling.reason = "own-credential";
    return false;
  }
  if (!placeholder.empty() || !bound.require) {
    handling.injections.push_back({.credential = credential, .placeholder = placeholder});
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

// --- Client certificates -----------------------------------------------------------------------

std::optional<std::size_t> Credentials::identity(const Handling& handling) const {
  for (const Injection& injection : handling.injections) {
    if (slots_[injection.credential].place == http::Place::none) return injection.credential;
  }
  return std::nullopt;
}

asio::awaitable<base::Result<plan::LeaseAnswer>> Credentials::certificate(Connection& connection,
                                                                          policy::Request request,
                                                                          std::size_t credential,
                                                                          bool verifies) {
  const std::string& name = plan_.policy.credentials[credential].name;
  if (revoked(name)) co_return plan::LeaseAnswer{.refusal = "revoked"};
  if (!desk_) co_return base::fail(base::Kind::peer, "broker", "is not there", {});
  plan::LeaseAnswer answer = CO_TRY(co_await desk_->ask(connection, {.credential = name,
                                                                     .host = request.host.name,
                                                                     .port = request.port,
                                                                     .method = request.method,
                                                                     .path = request.path,
                                                                     .verified_tls = verifies}));
  if (answer.refusal.empty()) connection.uses(name);
  co_return answer;
}

bool Credentials::signs(const Handling& handling) const {
  return std::ranges::any_of(handling.injections, [&](const Injection& injection) {
    return slots_[injection.credential].place == http::Place::sigv4;
  });
}

void Credentials::revoke(const std::string& name) {
  revoked_.insert(name);
}

}  // namespace gateway
