// Which values of the environment look like credentials.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "policy/policy.h"

namespace policy {
namespace {

// Prefixes that issuers put before their tokens, so that scanners know them.
constexpr std::array<std::string_view, 44> kPrefixes = {"sk-",         "sk_live_",
                                                        "sk_test_",    "rk_live_",
                                                        "whsec_",      "ghp_",
                                                        "gho_",        "ghu_",
                                                        "ghs_",        "ghr_",
                                                        "github_pat_", "glpat-",
                                                        "gldt-",       "xoxb-",
                                                        "xoxp-",       "xoxa-",
                                                        "xoxs-",       "xapp-",
                                                        "AKIA",        "ASIA",
                                                        "AIza",        "ya29.",
                                                        "GOCSPX-",     "npm_",
                                                        "pypi-",       "hf_",
                                                        "dop_v1_",     "SG.",
                                                        "shpat_",      "gsk_",
                                                        "r8_",         "dckr_pat_",
                                                        "tskey-",      "sntrys_",
                                                        "lin_api_",    "ATATT",
                                                        "hvs.",        "AGE-SECRET-KEY-",
                                                        "pul-",        "nvapi-",
                                                        "xai-",        "pplx-",
                                                        "ntn_",        "figd_"};
constexpr std::array<std::string_view, 4> kNames = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
constexpr std::size_t kRandom = 20;

bool is_token_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("+/=_.-").contains(c);
}

bool has_prefix(std::string_view value, std::string_view prefix) {
  // A token is long and has no spaces; "sk-learn" is none.
  return value.starts_with(prefix) && value.size() >= prefix.size() + 12 &&
         std::ranges::all_of(value, is_token_character);
}

// Three dot-separated parts, the first being base64 of `{"`.
bool is_jwt(std::string_view value) {
  return value.starts_with("eyJ") && value.size() > 30 && std::ranges::count(value, '.') == 2 &&
         std::ranges::all_of(value, is_token_character);
}

double bits_per_character(std::string_view value) {
  std::array<unsigned, 256> counts{};
  for (unsigned char c : value) ++counts[c];
  double bits = 0;
  for (unsigned count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(value.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

// Random characters: no spaces, letters and digits (or both cases), and few of them repeated.
bool is_random(std::string_view value) {
  if (value.size() < kRandom || !std::ranges::all_of(value, is_token_character)) return false;
  const bool lower = std::ranges::any_of(value, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool upper = std::ranges::any_of(value, [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool digit = std::ranges::any_of(value, [](char c) { return c >= '0' && c <= '9'; });
  return lower + upper + digit >= 2 && bits_per_character(value) >= 3.0;
}

bool names_a_secret(std::string_view name) {
  const std::string upper = base::to_upper(name);
  return std::ranges::any_of(kNames, [&](std::string_view word) {
    return upper == word || upper.ends_with("_" + std::string(word));
  });
}

}  // namespace

std::string credential_like(std::string_view name, std::string_view value) {
  for (std::string_view prefix : kPrefixes) {
    if (has_prefix(value, prefix)) return fmt::format("it starts with {}", prefix);
  }
  if (is_jwt(value)) return "it is a JSON Web Token";
  if (value.contains("PRIVATE KEY-----")) return "it holds a private key";
  if (names_a_secret(name) && is_random(value)) {
    return fmt::format("{} or more random characters under that name", kRandom);
  }
  return "";
}

}  // namespace policy
