// Everything that is signed is what goes upstream: nothing of the agent's signature is trusted.
#include "gateway/signing.h"

#include <algorithm>
#include <map>

namespace gateway {
namespace {

constexpr std::string_view kHash = "x-amz-content-sha256";
constexpr std::string_view kToken = "x-amz-security-token";

bool is_hash(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool always_signed(std::string_view name) {
  return name == "content-type" || name == "content-md5" || name.starts_with("x-amz-");
}

constexpr std::string_view kKeyActions[] = {
    "getauthorizationtoken", "getsessiontoken",    "getfederationtoken",        "assumerole",
    "createaccesskey",       "getrolecredentials", "getcredentialsforidentity", "createtoken",
    "getclustercredentials", "createsession"};

bool is_key_action(std::string_view action) {
  const std::string lower = base::to_lower(action);
  return std::ranges::any_of(kKeyActions,
                             [&](std::string_view one) { return lower.contains(one); });
}

}  // namespace

bool asks_for_keys(const http::RequestHead& head) {
  for (const http::Field& field : head.fields) {
    if (field.name == "x-amz-target" && is_key_action(field.value)) return true;
  }
  const std::string_view query = http::query_of(head);
  const auto actions = http::field_values(http::Fields::form, query, "Action");
  if (actions && std::ranges::any_of(*actions, is_key_action)) return true;
  const auto session = http::field_values(http::Fields::form, query, "session");
  if (!actions || !session || !session->empty()) return true;
  return base::to_lower(http::path_of(head)).contains("/authorization-token");
}

Payload payload_of(const http::RequestHead& head) {
  const http::Field* said = http::find_field(head.fields, kHash);
  if (said == nullptr) {
    return head.body.framing == http::Framing::none ? Payload::said : Payload::to_hash;
  }
  if (is_hash(said->value) || said->value == "UNSIGNED-PAYLOAD" ||
      said->value == "STREAMING-UNSIGNED-PAYLOAD-TRAILER") {
    return Payload::said;
  }
  return said->value.starts_with("STREAMING-") ? Payload::streaming : Payload::unknown;
}

std::string sigv4_date(std::int64_t now) {
  return http::sigv4_time(now).substr(0, 8);
}

void sign(http::RequestHead& head, std::string_view body, const policy::Inject& inject,
          const plan::LeaseAnswer& lease, std::int64_t now) {
  const http::Field* old = http::find_field(head.fields, "authorization");
  const auto claim = old == nullptr ? std::nullopt : http::sigv4_claim(old->value);
  const http::Field* said = http::find_field(head.fields, kHash);
  http::SigV4Request request{.method = head.method,
                             .target = head.target,
                             .headers = {},
                             .payload_hash = said == nullptr ? base::sha256(body) : said->value,
                             .time = http::sigv4_time(now),
                             .scope = {sigv4_date(now), inject.region, inject.service}};
  http::set_field(head.fields, "x-amz-date", request.time);
  http::remove_fields(head.fields, kToken);
  if (!lease.session_token.empty()) http::set_field(head.fields, kToken, lease.session_token);
  if (said == nullptr && inject.service == "s3") {
    http::set_field(head.fields, kHash, request.payload_hash);  // S3 takes no request without
  }
  std::map<std::string, std::string> headers;
  headers["host"] = head.host + (head.port ? ":" + std::to_string(*head.port) : "");
  for (const http::Field& field : head.fields) {
    const bool by_agent = claim && field.name.starts_with("x-") &&
                          std::ranges::find(claim->headers, field.name) != claim->headers.end();
    if (!always_signed(field.name) && !by_agent) continue;
    std::string& value = headers[field.name];
    value += (value.empty() ? "" : ",") + field.value;
  }
  request.headers.assign(headers.begin(), headers.end());
  http::set_field(head.fields, "authorization",
                  http::sigv4_authorization(request, lease.access_key, lease.secret));
  for (auto& [name, value] : request.headers) {
    if (name == kToken) base::wipe(value);
  }
  base::wipe(headers[std::string(kToken)]);
}

}  // namespace gateway
