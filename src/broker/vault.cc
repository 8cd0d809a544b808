// Who gets a secret: binding, placeholder, verified peer, lifetime and uses, in this order.
#include <algorithm>

#include "broker/broker.h"
#include "http/http.h"
#include "os/os.h"

namespace broker {

namespace {

base::Status usable(const policy::Credential& credential, const base::Secret& secret) {
  const std::string& name = credential.name;
  if (secret.empty()) return base::bad_input(name, "the secret is empty", {});
  // What has lines goes into no request.
  if (!policy::takes_lines(credential) && base::has_control(secret.reveal())) {
    return base::bad_input(name, "the secret has a line break or another control character",
                           "one line of text");
  }
  if (credential.inject.kind == policy::InjectKind::postgres &&
      !http::is_scram_password(secret.reveal())) {
    return base::bad_input(name,
                           "a password with other than printable ASCII is not carried out yet",
                           "letters, digits and signs of ASCII");
  }
  return {};
}

// What is lent of a secret that is not minted.
base::Result<Key> key_of(const policy::Credential& credential, base::Secret secret) {
  Key key;
  if (credential.inject.kind != policy::InjectKind::sigv4) {
    key.secret = std::move(secret);
    return key;
  }
  auto keys = http::sigv4_keys(secret.reveal());
  if (!keys) {
    return base::bad_input(credential.name, "the secret holds no keys of AWS",
                           "ID:SECRET, ID:SECRET:TOKEN or the JSON of credential_process");
  }
  key.secret = TRY(base::Secret::hold(keys->secret));
  key.access_key = TRY(base::Secret::hold(keys->id));
  key.session_token = TRY(base::Secret::hold(keys->token));
  base::wipe(keys->secret);
  base::wipe(keys->token);
  return key;
}

// The first part of the binding that does not cover the request.
std::string_view outside_of(const policy::Credential& credential, const policy::Request& request) {
  policy::Credential wide = credential;
  wide.hosts = {request.host.name};
  wide.ports = {request.port};
  wide.methods = {request.method};
  wide.paths = {"/**"};
  policy::Credential one = wide;
  one.hosts = credential.hosts;
  if (!policy::covers(one, request)) return "host";
  one = wide;
  one.ports = credential.ports;
  if (!policy::covers(one, request)) return "port";
  one = wide;
  one.methods = credential.methods;
  return policy::covers(one, request) ? "path" : "method";
}

}  // namespace

base::Result<Vault> Vault::open(const plan::Plan& plan, std::vector<base::Fd> secrets,
                                Clock clock) {
  const auto& credentials = plan.policy.credentials;
  if (secrets.size() != credentials.size()) {
    return base::bad_input("secrets", "not one for each credential", {});
  }
  Vault vault(plan, std::move(clock));
  for (std::size_t i = 0; i < credentials.size(); ++i) {
    const std::string& name = credentials[i].name;
    Held held{.origin = TRY_IN(name, os::take_secret(secrets[i].get(), kMaxSecret))};
    TRY(usable(credentials[i], held.origin));
    if (credentials[i].source.mint.kind == policy::MintKind::none) {
      held.key = TRY(key_of(credentials[i], std::move(held.origin)));
    }
    for (const plan::Placeholder& placeholder : plan.placeholders) {
      if (placeholder.credential == name) held.placeholders.push_back(placeholder.value);
    }
    secrets[i].reset();
    vault.held_.push_back(std::move(held));
  }
  vault.started_ = vault.clock_();
  return vault;
}

std::string Vault::refusal(const plan::LeaseRequest& request, std::size_t index) const {
  const policy::Credential& credential = plan_->policy.credentials[index];
  const Held& held = held_[index];
  if (held.revoked) return "revoked";
  policy::Request asked;
  asked.host.name = request.host;
  asked.port = request.port;
  asked.method = request.method;
  asked.path = request.path;
  // The host's own services are the one place where a credential may go in the clear.
  const bool clear = request.host == policy::kHostName && !request.verified_tls;
  asked.scheme = clear ? policy::Scheme::http : policy::Scheme::tls;
  if (credential.inject.kind == policy::InjectKind::postgres) asked.scheme = policy::Scheme::tcp;
  if (has(plan::Protection::binding)) {
    if (!policy::covers(credential, asked)) return std::string(outside_of(credential, asked));
    const bool known =
        std::ranges::find(held.placeholders, request.placeholder) != held.placeholders.end();
    if (request.placeholder.empty() ? credential.require : !known) return "placeholder";
  }
  if (has(plan::Protection::upstream_verify) && !request.verified_tls && !clear) return "tls";
  if (credential.lifetime_ms && clock_() - started_ >= *credential.lifetime_ms) return "expired";
  if (held.uses >= credential.uses) return "uses";
  return {};
}

Vault::Decision Vault::judge(const plan::LeaseRequest& request) const {
  const auto& credentials = plan_->policy.credentials;
  const auto found = std::ranges::find(credentials, request.credential, &policy::Credential::name);
  if (found == credentials.end()) return {.refusal = "unknown"};
  const auto index = static_cast<std::size_t>(found - credentials.begin());
  return {.refusal = refusal(request, index), .index = index};
}

Vault::Decision Vault::decide(const plan::LeaseRequest& request) {
  Decision decision = judge(request);
  if (decision.refusal.empty()) decision.use = ++held_[decision.index].uses;
  return decision;
}

plan::LeaseAnswer Vault::lend(const Decision& decision, const plan::LeaseRequest& request) const {
  const Key& key = held_[decision.index].key;
  const policy::Inject& inject = plan_->policy.credentials[decision.index].inject;
  if (inject.kind == policy::InjectKind::postgres) {
    // Worth the password for this salt alone; the password itself never leaves this process.
    auto salted = http::scram_salted(key.secret.reveal(), {request.salt, request.iterations});
    if (!salted) return {.refusal = "salt"};
    return {.secret = std::move(*salted)};
  }
  if (inject.kind != policy::InjectKind::sigv4) return {.secret = std::string(key.secret.reveal())};
  // With the account's own secret any request could be signed, for ever.
  return {
      .secret = http::sigv4_key(key.secret.reveal(), {request.date, inject.region, inject.service}),
      .access_key = std::string(key.access_key.reveal()),
      .session_token = std::string(key.session_token.reveal())};
}

base::Status Vault::change(const plan::Plan& plan) {
  const auto& before = plan_->policy.credentials;
  const auto& now = plan.policy.credentials;
  if (!std::ranges::equal(before, now, {}, &policy::Credential::name, &policy::Credential::name)) {
    return base::bad_input("plan", "other credentials than before", {});
  }
  plan_ = &plan;
  return {};
}

std::vector<std::size_t> Vault::revoke(std::string_view credential) {
  std::vector<std::size_t> gone;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const bool meant = credential.empty() || plan_->policy.credentials[i].name == credential;
    if (!meant || held_[i].revoked) continue;
    held_[i].revoked = true;
    held_[i].key = Key();
    gone.push_back(i);
  }
  return gone;
}

}  // namespace broker
