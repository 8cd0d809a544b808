// The words of SCRAM and the arithmetic behind them.
#include "http/scram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "base/text.h"

namespace http {
namespace {

constexpr std::size_t kDigest = 32;
constexpr std::size_t kMostWords = 2048;

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string hmac(std::string_view key, std::string_view text) {
  std::string digest(kDigest, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(),
       reinterpret_cast<unsigned char*>(digest.data()), &size);
  return digest;
}

std::string digest_of(std::string_view text) {
  std::string digest(kDigest, '\0');
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size,
             EVP_sha256(), nullptr);
  return digest;
}

std::unexpected<base::Error> bad(std::string what) {
  return base::bad_input("scram", std::move(what), "a challenge of SCRAM-SHA-256");
}

// The value of the attribute that `text` starts with, which is then taken off.
std::optional<std::string_view> attribute(std::string_view& text, char name) {
  if (text.size() < 2 || text[0] != name || text[1] != '=') return std::nullopt;
  const std::string_view value = text.substr(2, text.find(',') - 2);
  text.remove_prefix(std::min(text.size(), value.size() + 3));
  return value;
}

}  // namespace

bool is_fair(const ScramChallenge& challenge) {
  return !challenge.salt.empty() && challenge.salt.size() <= kMostSalt &&
         challenge.rounds >= kLeastRounds && challenge.rounds <= kMostRounds;
}

bool is_scram_password(std::string_view password) {
  return !password.empty() &&
         std::ranges::all_of(password, [](char c) { return c >= 0x20 && c < 0x7f; });
}

base::Result<std::string> scram_salted(std::string_view password, const ScramChallenge& challenge) {
  if (!is_fair(challenge)) return bad("a challenge that is not fair");
  std::string salted(kDigest, '\0');
  if (PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                        bytes_of(challenge.salt), static_cast<int>(challenge.salt.size()),
                        static_cast<int>(challenge.rounds), EVP_sha256(), kDigest,
                        reinterpret_cast<unsigned char*>(salted.data())) != 1) {
    return base::fail(base::Kind::system, "scram", "the password cannot be salted", {});
  }
  return salted;
}

Scram::Scram(std::string_view user, std::string nonce, ChannelBinding binding)
    : bare_("n=" + std::string(user) + ",r=" + nonce),
      nonce_(std::move(nonce)),
      binding_(std::move(binding)) {}

std::string Scram::first() const {
  return binding_.header + bare_;
}

base::Result<ScramChallenge> Scram::challenge(std::string_view server_first) {
  if (server_first.size() > kMostWords) return bad("a long answer");
  std::string_view rest = server_first;
  const auto nonce = attribute(rest, 'r');
  const auto salt = nonce ? attribute(rest, 's') : std::nullopt;
  const auto rounds = salt ? attribute(rest, 'i') : std::nullopt;
  if (!rounds || !rest.empty()) return bad("an answer of another form");
  if (!nonce->starts_with(nonce_) || nonce->size() == nonce_.size()) return bad("another nonce");
  const auto number = base::parse_number(*rounds);
  auto plain = base::from_base64(*salt);
  if (!number || !plain) return bad("no salt or no number of rounds");
  ScramChallenge challenge{.salt = std::move(*plain),
                           .rounds = static_cast<std::uint64_t>(*number)};
  if (!is_fair(challenge)) return bad("a challenge that is not fair");
  whole_nonce_ = *nonce;
  server_first_ = server_first;
  return challenge;
}

std::string Scram::last(std::string_view salted) {
  const std::string without_proof =
      "c=" + base::base64(binding_.header + binding_.data) + ",r=" + whole_nonce_;
  const std::string words = bare_ + "," + server_first_ + "," + without_proof;
  std::string key = hmac(salted, "Client Key");
  const std::string signature = hmac(digest_of(key), words);
  for (std::size_t i = 0; i < kDigest; ++i) {
    key[i] = static_cast<char>(static_cast<unsigned char>(key[i]) ^
                               static_cast<unsigned char>(signature[i]));
  }
  std::string server = hmac(salted, "Server Key");
  expected_ = "v=" + base::base64(hmac(server, words));
  base::wipe(server);
  return without_proof + ",p=" + base::base64(key);
}

bool Scram::proves(std::string_view server_final) const {
  return !expected_.empty() && server_final.size() == expected_.size() &&
         CRYPTO_memcmp(server_final.data(), expected_.data(), expected_.size()) == 0;
}

}  // namespace http
