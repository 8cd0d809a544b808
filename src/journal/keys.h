// The journal's Ed25519 key pair: made at the first use, kept in keys/, used to sign and to verify.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/base.h"

namespace journal {

inline constexpr std::size_t kSignatureDigits = 128;

struct PublicKey {
  std::array<unsigned char, 32> bytes{};
  bool operator==(const PublicKey&) const = default;

  // The first 16 hex digits of the SHA-256 of the key's bytes.
  [[nodiscard]] std::string id() const;
  // Whether `signature` (128 lower-case hex digits) is this key's of `text`.
  [[nodiscard]] bool signed_by(std::string_view text, std::string_view signature) const;
  // SubjectPublicKeyInfo as PEM (RFC 8410), as `openssl pkey -pubin` reads it.
  [[nodiscard]] std::string pem() const;
  [[nodiscard]] static base::Result<PublicKey> from_pem(std::string_view pem,
                                                        std::string_view what);
};

class SigningKey {
 public:
  // The pair whose seed is these 32 bytes; `missing` where no memory can be locked for it.
  [[nodiscard]] static base::Result<SigningKey> from_seed(std::string_view seed);
  // keys/journal.key (0600) and keys/journal.pub of the folder, made under its lock where they are
  // missing.
  [[nodiscard]] static base::Result<SigningKey> load_or_make(int keys_folder);

  [[nodiscard]] const PublicKey& public_key() const { return public_; }
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] std::string sign(std::string_view text) const;  // 128 hex digits

 private:
  SigningKey() = default;

  base::Secret secret_;
  PublicKey public_;
  std::string id_;
};

}  // namespace journal
