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

// --- Command lines

constexpr std::string_view kRedacted = "[redacted]";
constexpr std::array<std::string_view, 5> kAlwaysSecret = {"TOKEN", "SECRET", "PASSWORD", "PASSWD",
                                                           "PASSPHRASE"};

// "--api-token" → "API_TOKEN".
std::string name_of_flag(std::string_view flag) {
  while (flag.starts_with('-')) flag.remove_prefix(1);
  std::string name = base::to_upper(flag);
  std::ranges::replace(name, '-', '_');
  return name;
}

bool hides(std::string_view flag, std::string_view value) {
  const std::string name = name_of_flag(flag);
  const bool always = std::ranges::any_of(kAlwaysSecret, [&](std::string_view word) {
    return name == word || name.ends_with("_" + std::string(word));
  });
  return !value.empty() && (always || !credential_like(name, value).empty());
}

// The parts of a word that look like tokens, wherever they stand in it.
std::string without_tokens(std::string_view word) {
  const auto in_token = [](char c) { return is_token_character(c) && c != '/' && c != '='; };
  std::string out;
  while (!word.empty()) {
    std::size_t length = 0;
    while (length < word.size() && in_token(word[length])) ++length;
    const std::string_view run = word.substr(0, length);
    out += !run.empty() && !credential_like("", run).empty() ? kRedacted : run;
    word.remove_prefix(length);
    if (word.empty()) break;
    out += word.front();
    word.remove_prefix(1);
  }
  return out;
}

// "NAME=value": to its end where the word begins so, else (in a script) to the end of its own word.
void hide_assigned(std::string& word) {
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  for (std::size_t at = word.find('='); at != std::string::npos; at = word.find('=', at + 1)) {
    std::size_t first = at;
    while (first > 0 && in_name(word[first - 1])) --first;
    const std::size_t end =
        first == 0 ? word.size() : std::min(word.find_first_of(" \t\n'\";&|", at), word.size());
    if (!hides(word.substr(first, at - first), word.substr(at + 1, end - at - 1))) continue;
    word.replace(at + 1, end - at - 1, kRedacted);
  }
}

// "https://user:password@host" → without the password.
void hide_user_info(std::string& word) {
  for (std::size_t at = word.find("://"); at != std::string::npos; at = word.find("://", at)) {
    at += 3;
    const std::size_t end = std::min(word.find_first_of("/?# '\"", at), word.size());
    const std::size_t sign = word.rfind('@', end);
    const std::size_t colon = word.find(':', at);
    if (sign == std::string::npos || sign < at || colon >= sign) continue;
    word.replace(colon + 1, sign - colon - 1, kRedacted);
  }
}

std::string without_credentials(std::string word) {
  if (word.contains("PRIVATE KEY-----")) return std::string(kRedacted);
  hide_assigned(word);
  hide_user_info(word);
  return without_tokens(word);
}

}  // namespace

std::vector<std::string> without_credentials(std::vector<std::string> argv) {
  std::string flag;
  for (std::string& word : argv) {
    const bool follows = !flag.empty() && hides(flag, word);
    flag = word.starts_with("--") && !word.contains('=') ? word : "";
    word = follows ? std::string(kRedacted) : without_credentials(std::move(word));
  }
  return argv;
}

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
