// OpenSSL signs; the key is read anew for each signature, so that between two of them it lies in
// locked memory alone.
#include "broker/jwt.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

namespace broker {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* held) const {
    Free(held);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Context = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Freed<ECDSA_SIG_free>>;

constexpr int kLeastRsaBits = 2048;
constexpr std::size_t kHalf = 32;  // of a signature on P-256

int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*data*/) {
  return -1;
}

std::unexpected<base::Error> no_key(policy::JwtAlgorithm algorithm) {
  ERR_clear_error();
  return base::bad_input("key", "cannot sign with it",
                         algorithm == policy::JwtAlgorithm::rs256
                             ? "expected an RSA key of 2048 bits or more as PEM without a password"
                             : "expected a key on P-256 as PEM without a password");
}

bool fits(EVP_PKEY* key, policy::JwtAlgorithm algorithm) {
  const bool rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
  if (algorithm == policy::JwtAlgorithm::rs256)
    return rsa && EVP_PKEY_get_bits(key) >= kLeastRsaBits;
  return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC && EVP_PKEY_get_bits(key) == 256;
}

// The two numbers side by side, as RFC 7518 section 3.4 wants them.
base::Result<std::string> side_by_side(const std::string& der) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const Signature signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  std::string out(2 * kHalf, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  if (!signature ||
      BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), bytes, kHalf) != static_cast<int>(kHalf) ||
      BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), bytes + kHalf, kHalf) !=
          static_cast<int>(kHalf)) {
    return no_key(policy::JwtAlgorithm::es256);
  }
  return out;
}

}  // namespace

std::string base64url(std::string_view bytes) {
  std::string text = base::base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

base::Result<std::string> sign_jwt(policy::JwtAlgorithm algorithm, std::string_view pem,
                                   std::string_view key_id, std::string_view claims) {
  const bool rsa = algorithm == policy::JwtAlgorithm::rs256;
  base::JsonObject header;
  header.add("alg", rsa ? "RS256" : "ES256").add("typ", "JWT");
  if (!key_id.empty()) header.add("kid", key_id);
  std::string text = base64url(header.text()) + "." + base64url(claims);
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Key key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr) : nullptr);
  if (!key || !fits(key.get(), algorithm)) return no_key(algorithm);
  const Context context(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  if (!context ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()) != 1) {
    return no_key(algorithm);
  }
  std::string signature(size, '\0');
  auto* out = reinterpret_cast<unsigned char*>(signature.data());
  if (EVP_DigestSign(context.get(), out, &size, bytes, text.size()) != 1) return no_key(algorithm);
  signature.resize(size);
  if (!rsa) signature = TRY(side_by_side(signature));
  return text + "." + base64url(signature);
}

}  // namespace broker
