// Each vendor's requests. Sources: RFC 6749, RFC 7009, RFC 7523; Vault's HTTP API; GitHub's REST
// API for apps; AWS's AssumeRole; Google's service accounts and token exchange.
#include "broker/requests.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/jwt.h"
#include "http/http.h"

namespace broker {
namespace {

constexpr std::uint64_t kAssertion = 300;  // seconds that a signed assertion is good for
constexpr std::string_view kJwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
constexpr std::string_view kAccessToken = "urn:ietf:params:oauth:token-type:access_token";
constexpr std::string_view kStorageRead = "https://www.googleapis.com/auth/devstorage.read_only";
constexpr std::string_view kStorageWrite = "https://www.googleapis.com/auth/devstorage.read_write";

// Of a refresh token the secret may hold the client's own beside it, as one JSON object.
struct OauthSecrets {
  std::string refresh_token;
  std::string client_secret;
};

OauthSecrets oauth_secrets(const Mintage& m) {
  if (m.credential.source.mint.grant == policy::Grant::client_credentials) {
    return {.refresh_token = {}, .client_secret = std::string(m.secret)};
  }
  if (!m.secret.starts_with('{'))
    return {.refresh_token = std::string(m.secret), .client_secret = {}};
  return {http::json_value(m.secret, "refresh_token").value_or(""),
          http::json_value(m.secret, "client_secret").value_or("")};
}

// How the client says who it is (RFC 6749 section 2.3.1).
void show_client(const policy::Mint& mint, std::string secret, plan::MintAsk& ask, Form& form) {
  if (mint.auth == policy::ClientAuth::basic && !secret.empty()) {
    std::string encoded = http::form_value(secret);
    ask.headers["authorization"] = http::basic_value(http::form_value(mint.client), encoded);
    base::wipe(encoded);
  } else {
    form.emplace_back("client_id", mint.client);
    if (mint.auth == policy::ClientAuth::body) form.emplace_back("client_secret", secret);
  }
  base::wipe(secret);
}

base::Result<std::string> assertion(const Mintage& m, std::string_view issuer,
                                    std::string_view subject, std::string_view audience,
                                    std::string_view scope) {
  const policy::Mint& mint = m.credential.source.mint;
  base::JsonObject claims;
  claims.add("iss", issuer);
  if (!subject.empty()) claims.add("sub", subject);
  claims.add("aud", audience);
  if (!scope.empty()) claims.add("scope", scope);
  claims.add("iat", m.now).add("exp", m.now + static_cast<std::int64_t>(kAssertion));
  claims.add("jti", m.nonce);
  return sign_jwt(mint.algorithm, m.secret, mint.key_id, claims.text());
}

// A member of the key file that Google hands out for a service account.
base::Result<std::string> of_account(const Mintage& m, std::string_view member) {
  auto value = http::json_value(m.secret, member);
  if (value && !value->empty()) return std::move(*value);
  return base::bad_input("key", fmt::format("has no {}", member),
                         "expected the JSON key file of a service account");
}

std::string google_scope(const Mintage& m) {
  const std::string& asked = m.credential.source.mint.scope;
  if (!asked.empty()) return asked;
  for (const std::string& method : m.credential.methods) {
    if (method != "GET" && method != "HEAD" && method != "OPTIONS")
      return std::string(kStorageWrite);
  }
  return std::string(kStorageRead);
}

std::string json_map(const std::map<std::string, std::string>& values) {
  base::JsonObject object;
  for (const auto& [name, value] : values) object.add(name, value);
  return object.text();
}

// The signature of a request to AWS's token service itself.
base::Status sign_for_aws(const Mintage& m, plan::MintAsk& ask) {
  auto keys = http::sigv4_keys(m.secret);
  if (!keys) {
    return base::bad_input("key", "is none of AWS",
                           "expected ID:SECRET, ID:SECRET:TOKEN or the JSON of credential_process");
  }
  http::SigV4Request request;
  request.method = ask.method;
  request.target = ask.target;
  request.time = http::sigv4_time(m.now);
  request.scope = {request.time.substr(0, 8), m.credential.source.mint.region, "sts"};
  request.payload_hash = base::sha256(ask.body);
  ask.headers["x-amz-date"] = request.time;
  if (!keys->token.empty()) ask.headers["x-amz-security-token"] = keys->token;
  const std::string port = ask.port == 443 ? "" : ":" + std::to_string(ask.port);
  request.headers.assign(ask.headers.begin(), ask.headers.end());
  request.headers.emplace_back("host", ask.host + port);
  std::string key = http::sigv4_key(keys->secret, request.scope);
  ask.headers["authorization"] = http::sigv4_authorization(request, keys->id, key);
  base::wipe(key);
  base::wipe(keys->secret);
  base::wipe(keys->token);
  return {};
}

}  // namespace

plan::MintAsk ask_of(const std::string& url, std::string method, const std::string& below) {
  plan::MintAsk ask;
  const auto endpoint = policy::endpoint_of(url);
  if (!endpoint) return ask;  // dialled by nobody: its host is in no rule
  ask.host = endpoint->host;
  ask.port = endpoint->port;
  ask.method = std::move(method);
  ask.target = endpoint->path;
  if (!below.empty() && ask.target.ends_with('/')) ask.target.pop_back();
  ask.target += below;
  ask.headers = {{"accept", "application/json"}, {"user-agent", "cerco"}};
  return ask;
}

std::string form_of(Form form) {
  std::string out;
  for (auto& [name, value] : form) {
    if (value.empty()) continue;
    if (!out.empty()) out += '&';
    out += http::form_pair(name, value);
    base::wipe(value);
  }
  return out;
}

void set_form(plan::MintAsk& ask, Form form) {
  ask.headers["content-type"] = "application/x-www-form-urlencoded";
  ask.body = form_of(std::move(form));
}

void set_json(plan::MintAsk& ask, std::string json) {
  ask.headers["content-type"] = "application/json";
  ask.body = std::move(json);
}

base::Result<plan::MintAsk> ask_oauth2(const Mintage& m) {
  const policy::Mint& mint = m.credential.source.mint;
  OauthSecrets secrets = oauth_secrets(m);
  plan::MintAsk ask = ask_of(mint.url, "POST", "");
  ask.wanted = {"access_token", "token_type", "expires_in", "refresh_token", "error"};
  Form form;
  if (mint.grant == policy::Grant::refresh_token) {
    if (secrets.refresh_token.empty()) {
      return base::bad_input("key", "has no refresh_token",
                             "expected it alone, or in a JSON object");
    }
    form = {{"grant_type", "refresh_token"}, {"refresh_token", std::move(secrets.refresh_token)}};
  } else {
    form = {{"grant_type", "client_credentials"}};
  }
  form.emplace_back("scope", mint.scope);
  form.emplace_back("audience", mint.audience);
  show_client(mint, std::move(secrets.client_secret), ask, form);
  set_form(ask, std::move(form));
  return ask;
}

base::Result<plan::MintAsk> ask_oauth2_revocation(const Mintage& m, std::string_view token) {
  const policy::Mint& mint = m.credential.source.mint;
  plan::MintAsk ask = ask_of(mint.second_url, "POST", "");
  OauthSecrets secrets = oauth_secrets(m);
  base::wipe(secrets.refresh_token);
  Form form = {{"token", std::string(token)}, {"token_type_hint", "access_token"}};
  show_client(mint, std::move(secrets.client_secret), ask, form);
  set_form(ask, std::move(form));
  return ask;
}

base::Result<plan::MintAsk> ask_jwt_bearer(const Mintage& m) {
  const policy::Mint& mint = m.credential.source.mint;
  const std::string& subject = mint.subject.empty() ? mint.client : mint.subject;
  const std::string jwt = TRY(assertion(m, mint.client, subject, mint.audience, ""));
  plan::MintAsk ask = ask_of(mint.url, "POST", "");
  ask.wanted = {"access_token", "token_type", "expires_in", "error"};
  set_form(ask,
           {{"grant_type", std::string(kJwtBearer)}, {"assertion", jwt}, {"scope", mint.scope}});
  return ask;
}

plan::MintAsk ask_vault(const Mintage& m) {
  const policy::Mint& mint = m.credential.source.mint;
  plan::MintAsk ask = ask_of(mint.url, "GET", "/v1/" + mint.read);
  ask.headers["x-vault-token"] = m.secret;
  ask.headers["x-vault-request"] = "true";
  if (!mint.namespace_name.empty()) ask.headers["x-vault-namespace"] = mint.namespace_name;
  ask.wanted = {"data.data." + mint.field, "data." + mint.field, "lease_id", "lease_duration"};
  return ask;
}

base::Result<plan::MintAsk> ask_github(const Mintage& m, std::string_view installation) {
  constexpr std::int64_t kBack = 60;  // for clocks that differ, as GitHub advises
  const policy::Mint& mint = m.credential.source.mint;
  const policy::GithubGrant grant = TRY(policy::github_grant(m.credential));
  const std::string claims = base::JsonObject()
                                 .add("iat", m.now - kBack)
                                 .add("exp", m.now + static_cast<std::int64_t>(kAssertion))
                                 .add("iss", mint.client)
                                 .text();
  const std::string jwt = TRY(sign_jwt(policy::JwtAlgorithm::rs256, m.secret, "", claims));
  plan::MintAsk ask;
  if (installation.empty()) {
    ask = ask_of(mint.url, "GET",
                 "/repos/" + grant.owner + "/" + grant.repositories.front() + "/installation");
    ask.wanted = {"id"};
  } else {
    ask = ask_of(mint.url, "POST",
                 "/app/installations/" + std::string(installation) + "/access_tokens");
    set_json(ask, base::JsonObject()
                      .raw("repositories", base::json_strings(grant.repositories))
                      .raw("permissions", json_map(grant.permissions))
                      .text());
    ask.wanted = {"token", "expires_at", "repository_selection"};
  }
  ask.headers["accept"] = "application/vnd.github+json";
  ask.headers["x-github-api-version"] = "2022-11-28";
  ask.headers["authorization"] = "Bearer " + jwt;
  return ask;
}

base::Result<plan::MintAsk> ask_aws(const Mintage& m) {
  constexpr std::uint64_t kLeast = 900;  // seconds, the least and the usual most of AssumeRole
  constexpr std::uint64_t kMost = 3600;
  const policy::Mint& mint = m.credential.source.mint;
  const std::uint64_t wanted = m.credential.lifetime_ms.value_or(kMost * 1000) / 1000;
  plan::MintAsk ask = ask_of(mint.url, "POST", "");
  ask.headers["accept"] = "application/xml";
  ask.format = plan::MintFormat::xml;
  ask.wanted = {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration", "Code"};
  set_form(ask, {{"Action", "AssumeRole"},
                 {"Version", "2011-06-15"},
                 {"RoleArn", mint.role},
                 {"RoleSessionName", "cerco-" + m.run},
                 {"DurationSeconds", std::to_string(std::clamp(wanted, kLeast, kMost))},
                 {"Policy", TRY(policy::aws_session_policy(m.credential))}});
  TRY(sign_for_aws(m, ask));
  return ask;
}

base::Result<plan::MintAsk> ask_gcp(const Mintage& m) {
  const policy::Mint& mint = m.credential.source.mint;
  const std::string email = TRY(of_account(m, "client_email"));
  std::string key = TRY(of_account(m, "private_key"));
  const std::string key_id = TRY(of_account(m, "private_key_id"));
  const std::string claims = base::JsonObject()
                                 .add("iss", email)
                                 .add("aud", mint.url)
                                 .add("scope", google_scope(m))
                                 .add("iat", m.now)
                                 .add("exp", m.now + static_cast<std::int64_t>(kAssertion))
                                 .text();
  auto jwt = sign_jwt(policy::JwtAlgorithm::rs256, key, key_id, claims);
  base::wipe(key);
  plan::MintAsk ask = ask_of(mint.url, "POST", "");
  ask.wanted = {"access_token", "token_type", "expires_in", "error"};
  set_form(ask, {{"grant_type", std::string(kJwtBearer)}, {"assertion", TRY(std::move(jwt))}});
  return ask;
}

base::Result<plan::MintAsk> ask_gcp_exchange(const Mintage& m, const std::string& token) {
  const policy::Mint& mint = m.credential.source.mint;
  plan::MintAsk ask = ask_of(mint.second_url, "POST", "");
  ask.wanted = {"access_token", "token_type", "expires_in", "error"};
  set_form(ask, {{"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
                 {"requested_token_type", std::string(kAccessToken)},
                 {"subject_token_type", std::string(kAccessToken)},
                 {"subject_token", token},
                 {"options", TRY(policy::gcp_boundary(m.credential))}});
  return ask;
}

}  // namespace broker
