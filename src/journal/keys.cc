// Ed25519 by libsodium, in the PEM forms of RFC 8410.
#include "journal/keys.h"

#include <linux/openat2.h>

#include <sodium.h>

#include <cstdlib>

#include "os/os.h"

namespace journal {
namespace {

// The DER that stands before the 32 bytes in every Ed25519 key file.
constexpr std::string_view kPublicPrefix("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12);
constexpr std::string_view kPrivatePrefix(
    "\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20", 16);
constexpr const char* kPrivateName = "journal.key";
constexpr const char* kPublicName = "journal.pub";

std::string to_pem(std::string_view label, std::string_view der) {
  std::string out = "-----BEGIN " + std::string(label) + "-----\n";
  out += base::base64(der) + "\n";
  return out + "-----END " + std::string(label) + "-----\n";
}

// The last 32 bytes of the one block with this label; bad_input when it is not exactly that.
base::Result<std::string> from_pem(std::string_view pem, std::string_view label,
                                   std::string_view prefix, std::string_view what) {
  const auto wrong = [&] {
    return base::bad_input(std::string(what), "no Ed25519 key",
                           "a PEM file with one " + std::string(label));
  };
  const std::string begin = "-----BEGIN " + std::string(label) + "-----\n";
  const std::string end = "-----END " + std::string(label) + "-----";
  const std::size_t at = pem.find(begin);
  const std::size_t stop = pem.find(end);
  if (at == std::string_view::npos || stop == std::string_view::npos || stop < at + begin.size())
    return wrong();
  std::string body;
  for (char c : pem.substr(at + begin.size(), stop - at - begin.size())) {
    if (c != '\n' && c != '\r') body += c;
  }
  auto der = base::from_base64(body);
  base::wipe(body);
  if (!der || der->size() != prefix.size() + 32 || !der->starts_with(prefix)) return wrong();
  std::string bytes = der->substr(prefix.size());
  base::wipe(*der);
  return bytes;
}

const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Writes a new file beside `name` and renames it over: at every moment it is whole or not there.
base::Status write_whole(int folder, const std::string& name, std::string_view bytes,
                         unsigned mode) {
  const std::string fresh = name + ".new";
  (void)os::remove_at(folder, fresh);  // left by a process that was killed right here
  const base::Fd fd = TRY(os::openat2(folder, fresh, O_WRONLY | O_CREAT | O_EXCL, mode,
                                      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
  TRY(os::write_all(fd.get(), bytes, name));
  TRY(os::sync_data(fd.get(), name));
  return os::rename_at(folder, fresh, name);
}

base::Result<std::string> read_in(int folder, const std::string& name) {
  const base::Fd fd =
      TRY(os::openat2(folder, name, O_RDONLY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS));
  return os::read_all(fd.get(), 4096, name);
}

bool missing(const base::Error& error) {
  return error.number == ENOENT;
}

base::Result<SigningKey> make(int folder) {
  std::string seed(crypto_sign_SEEDBYTES, '\0');
  randombytes_buf(seed.data(), seed.size());
  std::string pem = to_pem("PRIVATE KEY", std::string(kPrivatePrefix) + seed);
  auto key = SigningKey::from_seed(seed);
  const base::Status written = key ? write_whole(folder, kPrivateName, pem, 0600) : base::Status();
  base::wipe(seed);
  base::wipe(pem);
  TRY(written);
  return key;
}

}  // namespace

std::string PublicKey::id() const {
  return base::sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).substr(0, 16);
}

bool PublicKey::signed_by(std::string_view text, std::string_view signature) const {
  if (signature.size() != kSignatureDigits) return false;
  for (char c : signature) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  }
  std::array<unsigned char, crypto_sign_BYTES> decoded{};
  std::size_t size = 0;
  if (sodium_hex2bin(decoded.data(), decoded.size(), signature.data(), signature.size(), nullptr,
                     &size, nullptr) != 0 ||
      size != decoded.size()) {
    return false;
  }
  return crypto_sign_verify_detached(decoded.data(), raw(text), text.size(), bytes.data()) == 0;
}

std::string PublicKey::pem() const {
  return to_pem("PUBLIC KEY",
                std::string(kPublicPrefix) +
                    std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

base::Result<PublicKey> PublicKey::from_pem(std::string_view pem, std::string_view what) {
  const std::string raw_bytes = TRY(journal::from_pem(pem, "PUBLIC KEY", kPublicPrefix, what));
  PublicKey key;
  std::copy(raw_bytes.begin(), raw_bytes.end(), key.bytes.begin());
  return key;
}

base::Result<SigningKey> SigningKey::from_seed(std::string_view seed) {
  if (sodium_init() < 0 || seed.size() != crypto_sign_SEEDBYTES) std::abort();
  SigningKey key;
  std::string secret(crypto_sign_SECRETKEYBYTES, '\0');
  crypto_sign_seed_keypair(key.public_.bytes.data(),
                           reinterpret_cast<unsigned char*>(secret.data()), raw(seed));
  auto held = base::Secret::hold(secret);
  base::wipe(secret);
  key.secret_ = TRY(std::move(held));
  key.id_ = key.public_.id();
  return key;
}

base::Result<SigningKey> SigningKey::load_or_make(int keys_folder) {
  if (sodium_init() < 0) std::abort();
  const os::FileLock lock = TRY(os::FileLock::take(keys_folder, "keys"));
  auto pem = read_in(keys_folder, kPrivateName);
  if (!pem && !missing(pem.error())) return std::unexpected(std::move(pem).error());
  base::Result<SigningKey> key = std::unexpected(base::Error{});
  if (pem) {
    std::string seed = TRY(journal::from_pem(*pem, "PRIVATE KEY", kPrivatePrefix, kPrivateName));
    key = from_seed(seed);
    base::wipe(seed);
    base::wipe(*pem);
    if (!key) return key;
  } else {
    key = TRY(make(keys_folder));
  }
  const std::string ours = key->public_key().pem();
  const auto shown = read_in(keys_folder, kPublicName);
  if (!shown && !missing(shown.error())) return std::unexpected(shown.error());
  if (!shown) TRY(write_whole(keys_folder, kPublicName, ours, 0644));
  if (shown && *shown != ours) {
    return base::fail(base::Kind::bad_input, kPublicName, "is not the public half of journal.key",
                      "both files, or neither");
  }
  return key;
}

std::string SigningKey::sign(std::string_view text) const {
  std::array<unsigned char, crypto_sign_BYTES> signature{};
  crypto_sign_detached(signature.data(), nullptr, raw(text), text.size(), raw(secret_.reveal()));
  return base::hex({reinterpret_cast<const char*>(signature.data()), signature.size()});
}

}  // namespace journal
