// From leases to a request with its secrets in their places, or signed.
#include <algorithm>
#include <ctime>

#include "gateway/credentials.h"
#include "gateway/signing.h"

namespace gateway {
namespace {

// Answers of the broker, wiped on every way out.
struct Leased {
  std::vector<plan::LeaseAnswer> answers;
  Leased() = default;
  Leased(const Leased&) = delete;
  Leased& operator=(const Leased&) = delete;
  ~Leased() {
    for (plan::LeaseAnswer& answer : answers) wipe(answer);
  }
};

}  // namespace

asio::awaitable<base::Result<std::string>> Credentials::inject(
    Connection& connection, http::RequestHead& head, std::string& body, policy::Request request,
    Handling handling, bool verified_tls) {
  // All leases before the first secret goes in, so that a refused request holds none.
  Leased leased;
  std::erase_if(handling.injections, [this](const Injection& injection) {
    return slots_[injection.credential].place == http::Place::none;
  });
  const std::int64_t now = std::time(nullptr);
  for (const Injection& injection : handling.injections) {
    const std::string& name = plan_.policy.credentials[injection.credential].name;
    const bool signs = slots_[injection.credential].place == http::Place::sigv4;
    if (revoked(name)) co_return "credential-revoked";
    if (!desk_) co_return base::fail(base::Kind::peer, "broker", "is not there", {});
    leased.answers.push_back(
        CO_TRY(co_await desk_->ask(connection, {.credential = name,
                                                .host = request.host.name,
                                                .port = request.port,
                                                .method = request.method,
                                                .path = request.path,
                                                .verified_tls = verified_tls,
                                                .placeholder = injection.placeholder,
                                                .date = signs ? sigv4_date(now) : ""})));
    const plan::LeaseAnswer& answer = leased.answers.back();
    if (!answer.refusal.empty()) co_return "credential-" + answer.refusal;
    // A secret with a line break would write header fields of its own (N111, CWE-113).
    const bool plain = !base::has_control(signs ? answer.access_key : answer.secret) &&
                       !base::has_control(answer.session_token);
    if (answer.secret.empty() || !plain) co_return "credential-value";
  }
  for (std::size_t i = 0; i < handling.injections.size(); ++i) {
    const Injection& injection = handling.injections[i];
    const plan::LeaseAnswer& lease = leased.answers[i];
    // What cannot be taken out of the answer is not sent.
    if (slots_[injection.credential].place == http::Place::sigv4) {
      CO_TRY(remember(injection.credential, injection.placeholder, lease.access_key));
      CO_TRY(
          remember(injection.credential, session_mark(injection.credential), lease.session_token));
      sign(head, body, plan_.policy.credentials[injection.credential].inject, lease, now);
    } else {
      CO_TRY(remember(injection.credential, injection.placeholder, lease.secret));
      if (!put(head, body, injection, lease.secret)) co_return "credential-value";
    }
    connection.uses(plan_.policy.credentials[injection.credential].name);
  }
  co_return std::string();
}

// --- PostgreSQL --------------------------------------------------------------------------------

std::optional<std::size_t> Credentials::postgres(const policy::Request& request,
                                                 std::string_view user) const {
  for (std::size_t i = 0; i < plan_.policy.credentials.size(); ++i) {
    const policy::Credential& credential = plan_.policy.credentials[i];
    if (credential.inject.kind == policy::InjectKind::postgres && credential.inject.user == user &&
        policy::covers(credential, request)) {
      return i;
    }
  }
  return std::nullopt;
}

bool Credentials::speaks_postgres(const policy::Request& request) const {
  return std::ranges::any_of(plan_.policy.credentials, [&](const policy::Credential& credential) {
    return credential.inject.kind == policy::InjectKind::postgres &&
           policy::covers(credential, request);
  });
}

bool Credentials::stands_for(std::size_t credential, std::string_view placeholder) const {
  for (std::size_t mark = 0; mark < marked_.size(); ++mark) {
    if (credential_of_[mark] == credential && marked_[mark].placeholder == placeholder) return true;
  }
  return false;
}

asio::awaitable<base::Result<plan::LeaseAnswer>> Credentials::salted(
    Connection& connection, policy::Request request, std::size_t credential, bool verified_tls,
    std::string placeholder, http::ScramChallenge challenge) {
  const std::string& name = plan_.policy.credentials[credential].name;
  if (revoked(name)) co_return plan::LeaseAnswer{.refusal = "revoked"};
  if (!desk_) co_return base::fail(base::Kind::peer, "broker", "is not there", {});
  plan::LeaseAnswer answer =
      CO_TRY(co_await desk_->ask(connection, {.credential = name,
                                              .host = request.host.name,
                                              .port = request.port,
                                              .verified_tls = verified_tls,
                                              .placeholder = std::move(placeholder),
                                              .salt = std::move(challenge.salt),
                                              .iterations = challenge.rounds}));
  if (answer.refusal.empty()) connection.uses(name);
  co_return answer;
}

std::string Credentials::session_mark(std::size_t credential) const {
  for (const plan::Placeholder& placeholder : plan_.placeholders) {
    const bool its = placeholder.credential == plan_.policy.credentials[credential].name;
    if (its && placeholder.field == policy::kSessionToken) return placeholder.value;
  }
  return "[credential]";
}

// False where the body has no such field after all.
bool Credentials::put(http::RequestHead& head, std::string& body, const Injection& injection,
                      const std::string& secret) const {
  const http::Slot& slot = slots_[injection.credential];
  if (slot.place != http::Place::body) {
    http::put_secret(head, slot, injection.placeholder, secret);
    return true;
  }
  const http::Fields kind = http::fields_of(head);
  std::string value = http::render(slot, secret);
  auto written = injection.placeholder.empty()
                     ? http::with_only_field(kind, body, slot.name, value)
                     : http::with_field(kind, body, slot.name,
                                        http::render(slot, injection.placeholder), value);
  base::wipe(value);
  if (!written) return false;
  base::wipe(body);
  body = std::move(*written);
  return true;
}

base::Status Credentials::remember(std::size_t credential, const std::string& placeholder,
                                   const std::string& secret) {
  if (!plan_.protections.contains(plan::Protection::redaction)) return {};
  if (secret.size() < http::kLeastRedacted) return {};
  std::pair known(credential, base::sha256(secret));
  if (remembered_.contains(known)) return {};
  std::string shown = placeholder;
  if (shown.empty()) {
    const auto mark = std::ranges::find(credential_of_, credential);
    shown = mark == credential_of_.end()
                ? "[credential]"
                : marked_[static_cast<std::size_t>(mark - credential_of_.begin())].placeholder;
  }
  redactions_.push_back(std::make_unique<http::Redaction>(
      TRY(http::Redaction::of(secret, shown, slots_[credential]))));
  remembered_.insert(std::move(known));
  return {};
}

}  // namespace gateway
