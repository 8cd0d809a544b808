// Mints the run's authority and one leaf a name, by the rules that strict clients insist on.
#include "http/certificate.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <list>

#include "http/openssl.h"

namespace http {

namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kLeafLife = 7 * kDay;
constexpr std::uint64_t kLongest = 3650ULL * kDay;
constexpr std::size_t kMostLeaves = 256;

// A certificate with serial, dates and key, and nothing said yet about whose it is.
base::Result<Certificate> blank(EVP_PKEY* key, std::int64_t from, std::int64_t to) {
  Certificate certificate(X509_new());
  std::array<unsigned char, 16> serial{};
  if (!certificate || RAND_bytes(serial.data(), serial.size()) != 1)
    return openssl_error("certificate");
  serial[0] = static_cast<unsigned char>((serial[0] & 0x7f) |
                                         0x40);  // positive, never zero, always 16 bytes
  std::unique_ptr<BIGNUM, Freer<BN_free>> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  if (!number ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) == nullptr ||
      X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), from) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), to) == nullptr ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return openssl_error("certificate");
  }
  return certificate;
}

bool add_name(X509_NAME* name, const char* field, std::string_view text) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()), -1, 0) == 1;
}

// One extension in OpenSSL's notation; `value` never has anything of a client's in it.
bool add_extension(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// The subject alternative name: an iPAddress for literals, else a dNSName.
bool add_alternative_name(X509* certificate, std::string_view host, bool critical) {
  const std::string text(host);
  std::array<unsigned char, 16> address{};
  int size = 0;
  if (inet_pton(AF_INET, text.c_str(), address.data()) == 1) size = 4;
  if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) size = 16;
  std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>> names(sk_GENERAL_NAME_new_null());
  GENERAL_NAME* name = GENERAL_NAME_new();
  ASN1_STRING* value = size > 0 ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  if (!names || name == nullptr || value == nullptr ||
      sk_GENERAL_NAME_push(names.get(), name) <= 0) {
    GENERAL_NAME_free(name);
    ASN1_STRING_free(value);
    return false;
  }
  GENERAL_NAME_set0_value(name, size > 0 ? GEN_IPADD : GEN_DNS, value);
  const void* bytes = size > 0 ? static_cast<const void*>(address.data()) : text.data();
  return ASN1_STRING_set(value, bytes, size > 0 ? size : static_cast<int>(text.size())) == 1 &&
         X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), critical ? 1 : 0, 0) ==
             1;
}

base::Result<Certificate> make_authority(std::string_view run, EVP_PKEY* key, std::int64_t from,
                                         std::int64_t to) {
  auto certificate = TRY(blank(key, from, to));
  X509* x = certificate.get();
  X509_NAME* subject = X509_get_subject_name(x);
  // The run's id makes the name unique: one name with two keys breaks chain building in clients.
  const std::string name = "cerco run " + std::string(run);
  if (!add_name(subject, "O", "cerco") || !add_name(subject, "CN", name) ||
      X509_set_issuer_name(x, subject) != 1 ||
      !add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(x, x, NID_subject_key_identifier, "hash") ||
      X509_sign(x, key, EVP_sha256()) == 0) {
    return openssl_error("authority");
  }
  return certificate;
}

base::Result<Certificate> make_leaf(std::string_view host, EVP_PKEY* leaf_key, X509* issuer,
                                    EVP_PKEY* issuer_key, std::int64_t from, std::int64_t to) {
  auto certificate = TRY(blank(leaf_key, from, to));
  X509* x = certificate.get();
  // A common name has at most 64 bytes (ub-common-name); without one the alternative name is
  // critical.
  const bool named = host.size() <= 64;
  if ((named && !add_name(X509_get_subject_name(x), "CN", host)) ||
      X509_set_issuer_name(x, X509_get_subject_name(issuer)) != 1 ||
      !add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") ||
      !add_extension(x, issuer, NID_ext_key_usage, "serverAuth") ||
      !add_extension(x, issuer, NID_authority_key_identifier, "keyid:always") ||
      !add_alternative_name(x, host, !named) || X509_sign(x, issuer_key, EVP_sha256()) == 0) {
    return openssl_error("leaf certificate");
  }
  return certificate;
}

std::string pem_of(X509* certificate) {
  Bio memory(BIO_new(BIO_s_mem()));
  if (!memory || PEM_write_bio_X509(memory.get(), certificate) != 1) return {};
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

}  // namespace

struct Authority::State {
  struct Leaf {
    std::string host;
    std::int64_t until = 0;
    TlsContext context;
  };
  Key key;
  Key leaf_key;  // one for all leaves: minting is one signature
  Certificate certificate;
  std::string pem;
  std::int64_t until = 0;
  std::function<std::int64_t()> clock;
  std::list<Leaf> leaves;  // used last comes first
};

Authority::Authority(std::unique_ptr<State> state) : state_(std::move(state)) {}
Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

base::Result<Authority> Authority::make(std::string_view run, std::uint64_t lifetime_seconds,
                                        std::function<std::int64_t()> clock) {
  auto state = std::make_unique<State>();
  state->clock = std::move(clock);
  state->key.reset(EVP_EC_gen("P-256"));
  state->leaf_key.reset(EVP_EC_gen("P-256"));
  if (!state->key || !state->leaf_key) return openssl_error("authority");
  const std::int64_t now = state->clock();
  state->until = now + static_cast<std::int64_t>(std::min(lifetime_seconds, kLongest)) + kDay;
  state->certificate = TRY(make_authority(run, state->key.get(), now - kDay, state->until));
  state->pem = pem_of(state->certificate.get());
  if (state->pem.empty()) return openssl_error("authority");
  return Authority(std::move(state));
}

const std::string& Authority::pem() const {
  return state_->pem;
}

base::Result<TlsContext> Authority::server_context(std::string_view host) {
  auto& leaves = state_->leaves;
  const std::int64_t now = state_->clock();
  const auto found = std::ranges::find(leaves, host, &State::Leaf::host);
  if (found != leaves.end() && found->until > now + kDay / 2) {
    leaves.splice(leaves.begin(), leaves, found);
    return leaves.front().context;
  }
  if (found != leaves.end()) leaves.erase(found);
  const std::int64_t until = std::min(state_->until, now + kLeafLife);
  auto leaf = TRY(make_leaf(host, state_->leaf_key.get(), state_->certificate.get(),
                            state_->key.get(), now - kDay, until));
  auto context = TRY(leaf_context(host, leaf.get(), state_->leaf_key.get()));
  leaves.push_front({std::string(host), until, context});
  if (leaves.size() > kMostLeaves) leaves.pop_back();
  return context;
}

}  // namespace http
