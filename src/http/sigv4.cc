// Signs requests as AWS's services check them.
#include "http/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "base/base.h"
#include "http/json_members.h"
#include "http/percent.h"

namespace http {

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kEnd = "aws4_request";

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), &size);
  return {reinterpret_cast<const char*>(out.data()), size};
}

// Each segment escaped; of what is escaped already once more, except for S3.
std::string canonical_path(std::string_view path, bool once) {
  std::string out;
  for (const std::string_view segment : base::split(path, '/')) {
    if (segment.data() != path.data()) out += '/';
    out += percent_encoded(once ? percent_decoded(segment) : std::string(segment), kUpperHex);
  }
  return out.empty() ? "/" : out;
}

std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (!query.empty()) {
    for (const std::string_view part : base::split(query, '&')) {
      const auto equals = part.find('=');
      const std::string_view value =
          equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
      pairs.emplace_back(percent_encoded(percent_decoded(part.substr(0, equals)), kUpperHex),
                         percent_encoded(percent_decoded(value), kUpperHex));
    }
  }
  std::ranges::sort(pairs);
  std::string out;
  for (const auto& [name, value] : pairs) out += (out.empty() ? "" : "&") + name + "=" + value;
  return out;
}

// Without spaces at the ends, and with one where there are several.
std::string canonical_value(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

struct Headers {
  std::string lines;
  std::string names;
};

Headers canonical_headers(const SigV4Request& request) {
  auto sorted = request.headers;
  std::ranges::sort(sorted);
  Headers headers;
  for (const auto& [name, value] : sorted) {
    headers.lines += name + ":" + canonical_value(value) + "\n";
    headers.names += (headers.names.empty() ? "" : ";") + name;
  }
  return headers;
}

std::string scope_text(const SigV4Scope& scope) {
  return scope.date + "/" + scope.region + "/" + scope.service + "/" + std::string(kEnd);
}

std::optional<SigV4Keys> keys_of_json(std::string_view text) {
  auto members = json_members(text);
  if (!members) return std::nullopt;
  SigV4Keys keys;
  for (JsonMember& member : *members) {
    if (member.name == "AccessKeyId") keys.id = std::move(member.value);
    if (member.name == "SecretAccessKey") keys.secret = std::move(member.value);
    if (member.name == "SessionToken") keys.token = std::move(member.value);
  }
  return keys;
}

}  // namespace

std::optional<SigV4Keys> sigv4_keys(std::string_view text) {
  std::optional<SigV4Keys> keys;
  if (text.starts_with('{')) {
    keys = keys_of_json(text);
  } else {
    const auto first = text.find(':');
    if (first == std::string_view::npos) return std::nullopt;
    const auto second = text.find(':', first + 1);
    keys.emplace();
    keys->id = text.substr(0, first);
    keys->secret =
        text.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
    if (second != std::string_view::npos) keys->token = text.substr(second + 1);
  }
  if (!keys || keys->id.empty() || keys->secret.empty()) return std::nullopt;
  for (const std::string* one : {&keys->id, &keys->secret, &keys->token}) {
    if (base::has_control(*one)) return std::nullopt;
  }
  return keys;
}

std::string sigv4_key(std::string_view secret, const SigV4Scope& scope) {
  std::string key = "AWS4" + std::string(secret);
  for (const std::string_view part : {std::string_view(scope.date), std::string_view(scope.region),
                                      std::string_view(scope.service), kEnd}) {
    std::string next = hmac(key, part);
    base::wipe(key);
    key = std::move(next);
  }
  return key;
}

std::optional<SigV4Claim> sigv4_claim(std::string_view authorization) {
  if (!authorization.starts_with(kAlgorithm)) return std::nullopt;
  authorization.remove_prefix(kAlgorithm.size());
  if (!authorization.starts_with(' ')) return std::nullopt;
  SigV4Claim claim;
  int seen = 0;
  for (std::string_view part : base::split(authorization, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view value = part.substr(equals + 1);
    if (part.starts_with("Credential=") && claim.id.empty()) {
      const auto words = base::split(value, '/');
      if (words.size() != 5 || words[4] != kEnd) return std::nullopt;
      claim.id = words[0];
      claim.scope = {std::string(words[1]), std::string(words[2]), std::string(words[3])};
    } else if (part.starts_with("SignedHeaders=") && claim.headers.empty()) {
      for (const std::string_view name : base::split(value, ';')) claim.headers.emplace_back(name);
    } else if (part.starts_with("Signature=") && claim.signature.empty()) {
      claim.signature = value;
    } else {
      return std::nullopt;
    }
    ++seen;
  }
  if (seen != 3 || claim.id.empty() || claim.signature.empty()) return std::nullopt;
  return claim;
}

std::string sigv4_signature(const SigV4Request& request, std::string_view key) {
  const auto question = request.target.find('?');
  const std::string_view path = std::string_view(request.target).substr(0, question);
  const std::string_view query = question == std::string::npos
                                     ? std::string_view()
                                     : std::string_view(request.target).substr(question + 1);
  const Headers headers = canonical_headers(request);
  const std::string canonical = request.method + "\n" +
                                canonical_path(path, request.scope.service == "s3") + "\n" +
                                canonical_query(query) + "\n" + headers.lines + "\n" +
                                headers.names + "\n" + request.payload_hash;
  return base::hex(hmac(key, std::string(kAlgorithm) + "\n" + request.time + "\n" +
                                 scope_text(request.scope) + "\n" + base::sha256(canonical)));
}

std::string sigv4_authorization(const SigV4Request& request, std::string_view id,
                                std::string_view key) {
  return std::string(kAlgorithm) + " Credential=" + std::string(id) + "/" +
         scope_text(request.scope) + ", SignedHeaders=" + canonical_headers(request).names +
         ", Signature=" + sigv4_signature(request, key);
}

std::string sigv4_time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
  return {text.data(), size};
}

}  // namespace http
