// What an answer means. Whatever does not say plainly that a key was made means that none was.
#include "broker/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "broker/requests.h"

namespace broker {
namespace {

constexpr std::uint64_t kUnsaid = 300;  // seconds a key lives whose end is not said
constexpr std::uint64_t kMostLife = 366ULL * 24 * 3600;  // beyond this a number says nothing

std::string member(const plan::MintTold& told, const std::string& name) {
  const auto found = told.found.find(name);
  return found == told.found.end() ? std::string() : found->second;
}

std::unexpected<base::Error> refused(std::string what) {
  return base::fail(base::Kind::peer, "mint", std::move(what), {});
}

// A vendor's own word for what is wrong, where it is one: no text of theirs goes further.
std::string word(const std::string& text) {
  const bool plain = !text.empty() && text.size() <= 40 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
  return plain ? ": " + text : "";
}

base::Status judge(const plan::MintTold& told) {
  if (!told.problem.empty()) return refused(told.problem);
  if (told.status == 200 || told.status == 201) return {};
  std::string said = member(told, "error");
  if (said.empty()) said = member(told, "Code");
  return refused(fmt::format("status {}{}", told.status, word(said)));
}

// A key that goes into a header field: one line, no space, not too long.
base::Status check_key(const std::string& key) {
  if (key.empty()) return refused("no key in the answer");
  if (base::has_control(key) || key.contains(' ')) return refused("a key that is none");
  return {};
}

std::uint64_t life_of(const std::string& seconds) {
  const auto number = base::parse_number(seconds);
  return number && *number != 0 ? std::min(*number, kMostLife) : kUnsaid;
}

std::uint64_t life_until(const std::string& instant, std::int64_t now) {
  const auto end = instant_of(instant);
  if (!end) return kUnsaid;
  return *end > now ? std::min(static_cast<std::uint64_t>(*end - now), kMostLife) : 1;
}

}  // namespace

void wipe(Minted& minted) {
  for (std::string* one : {&minted.secret, &minted.session_token, &minted.rotated})
    base::wipe(*one);
}

std::optional<std::int64_t> instant_of(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || !text.ends_with('Z')) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !digit : text[i] != kForm[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t size) {
    int value = 0;
    for (const char c : text.substr(at, size)) value = value * 10 + (c - '0');
    return value;
  };
  std::tm parts{};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(5, 2) - 1;
  parts.tm_mday = number(8, 2);
  parts.tm_hour = number(11, 2);
  parts.tm_min = number(14, 2);
  parts.tm_sec = number(17, 2);
  return ::timegm(&parts);
}

base::Result<Step> Recipe::begin() {
  const policy::Mint& mint = m_.credential.source.mint;
  switch (mint.kind) {
    case policy::MintKind::none:
      break;
    case policy::MintKind::oauth2:
      return TRY(ask_oauth2(m_));
    case policy::MintKind::jwt_bearer:
      return TRY(ask_jwt_bearer(m_));
    case policy::MintKind::vault:
      return ask_vault(m_);
    case policy::MintKind::github_app:
      if (!mint.installation.empty()) return github_token(mint.installation);
      return TRY(ask_github(m_, ""));
    case policy::MintKind::aws_sts:
      return TRY(ask_aws(m_));
    case policy::MintKind::gcp:
      return TRY(ask_gcp(m_));
  }
  return base::not_yet("mint");
}

base::Result<Step> Recipe::take(const plan::MintTold& told) {
  TRY(judge(told));
  switch (m_.credential.source.mint.kind) {
    case policy::MintKind::vault:
      return take_vault(told);
    case policy::MintKind::github_app:
      return take_github(told);
    case policy::MintKind::aws_sts:
      return take_aws(told);
    case policy::MintKind::gcp:
      return take_gcp(told);
    default:
      return take_token(told);
  }
}

// RFC 6749 section 5.1.
base::Result<Step> Recipe::take_token(const plan::MintTold& told) {
  Minted minted;
  minted.secret = member(told, "access_token");
  TRY(check_key(minted.secret));
  const std::string type = base::to_lower(member(told, "token_type"));
  if (!type.empty() && type != "bearer") {
    wipe(minted);
    return refused("a key of another type");
  }
  minted.lives_s = life_of(member(told, "expires_in"));
  minted.rotated = member(told, "refresh_token");
  return minted;
}

base::Result<Step> Recipe::take_vault(const plan::MintTold& told) const {
  const std::string& field = m_.credential.source.mint.field;
  Minted minted;
  minted.secret = member(told, "data.data." + field);
  if (minted.secret.empty()) minted.secret = member(told, "data." + field);
  if (minted.secret.empty()) return refused("no such field in the answer");
  if (base::has_control(minted.secret)) {
    wipe(minted);
    return refused("a key that is none");
  }
  minted.lease = member(told, "lease_id");
  // Without a lease the number is a hint of the version 1 store, and what changes there is to be
  // seen soon.
  minted.lives_s = minted.lease.empty() ? kUnsaid : life_of(member(told, "lease_duration"));
  return minted;
}

base::Result<Step> Recipe::github_token(std::string_view installation) {
  step_ = 1;
  return TRY(ask_github(m_, installation));
}

base::Result<Step> Recipe::take_github(const plan::MintTold& told) {
  if (step_ == 0) {
    const std::string id = member(told, "id");
    if (!base::parse_number(id)) return refused("no installation in the answer");
    return github_token(id);
  }
  // A key for every repository is more than was asked for.
  if (const std::string of = member(told, "repository_selection");
      !of.empty() && of != "selected") {
    return refused("a key for more than was asked for");
  }
  Minted minted;
  minted.secret = member(told, "token");
  TRY(check_key(minted.secret));
  minted.lives_s = life_until(member(told, "expires_at"), m_.now);
  return minted;
}

base::Result<Step> Recipe::take_aws(const plan::MintTold& told) const {
  Minted minted;
  minted.secret = member(told, "SecretAccessKey");
  minted.access_key = member(told, "AccessKeyId");
  minted.session_token = member(told, "SessionToken");
  for (const std::string* one : {&minted.secret, &minted.access_key, &minted.session_token}) {
    if (auto checked = check_key(*one); !checked) {
      wipe(minted);
      return std::unexpected(std::move(checked).error());
    }
  }
  minted.lives_s = life_until(member(told, "Expiration"), m_.now);
  return minted;
}

base::Result<Step> Recipe::take_gcp(const plan::MintTold& told) {
  Step step = TRY(take_token(told));
  auto& minted = std::get<Minted>(step);
  base::wipe(minted.rotated);
  if (step_ == 1) {
    // The answer may not say its end: it is that of the key that was exchanged.
    if (member(told, "expires_in").empty()) minted.lives_s = lives_s_;
    return step;
  }
  const std::string boundary = TRY(policy::gcp_boundary(m_.credential));
  if (boundary.empty()) return step;
  step_ = 1;
  lives_s_ = minted.lives_s;
  auto ask = ask_gcp_exchange(m_, minted.secret);
  wipe(minted);
  return TRY(std::move(ask));
}

// --- Leases ------------------------------------------------------------------------------------

namespace {

plan::MintAsk ask_of_lease(const Mintage& m, const std::string& below, std::string_view lease) {
  const policy::Mint& mint = m.credential.source.mint;
  plan::MintAsk ask = ask_of(mint.url, "PUT", "/v1/sys/leases/" + below);
  ask.headers["x-vault-token"] = m.secret;
  ask.headers["x-vault-request"] = "true";
  if (!mint.namespace_name.empty()) ask.headers["x-vault-namespace"] = mint.namespace_name;
  set_json(ask, base::JsonObject().add("lease_id", lease).text());
  return ask;
}

}  // namespace

base::Result<plan::MintAsk> renewal(const Mintage& mintage, std::string_view lease) {
  plan::MintAsk ask = ask_of_lease(mintage, "renew", lease);
  ask.wanted = {"lease_id", "lease_duration"};
  return ask;
}

std::uint64_t renewed_for(const plan::MintTold& told) {
  if (!told.problem.empty() || told.status != 200) return 0;
  const auto seconds = base::parse_number(member(told, "lease_duration"));
  return seconds ? std::min(*seconds, kMostLife) : 0;
}

base::Result<std::optional<plan::MintAsk>> revocation(const Mintage& mintage,
                                                      std::string_view secret,
                                                      std::string_view lease) {
  const policy::Mint& mint = mintage.credential.source.mint;
  const bool revocable = mint.kind == policy::MintKind::oauth2 && !mint.second_url.empty();
  if (revocable) return TRY(ask_oauth2_revocation(mintage, secret));
  if (mint.kind == policy::MintKind::vault && !lease.empty()) {
    return ask_of_lease(mintage, "revoke", lease);
  }
  if (mint.kind == policy::MintKind::github_app) {
    plan::MintAsk ask = ask_of(mint.url, "DELETE", "/installation/token");
    ask.headers["accept"] = "application/vnd.github+json";
    ask.headers["x-github-api-version"] = "2022-11-28";
    ask.headers["authorization"] = "Bearer " + std::string(secret);
    return ask;
  }
  return std::nullopt;
}

bool revocation_done(const plan::MintTold& told) {
  return told.problem.empty() && (told.status == 200 || told.status == 204);
}

}  // namespace broker
