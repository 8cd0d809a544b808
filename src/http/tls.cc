// TLS contexts: what the gateway offers inside, and what it demands of upstream.
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <cstring>

#include "http/certificate.h"
#include "http/openssl.h"
#include "http/syntax.h"

namespace http {

namespace {

constexpr std::string_view kAlpn = "\x08http/1.1";
constexpr std::string_view kAlpnPostgres = "\x0apostgresql";
constexpr std::string_view kAlpnBoth = "\x02h2\x08http/1.1";

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// RFC 9113 section 9.2.2 bars the older cipher suites of TLS 1.2 from HTTP/2.
bool fit_for_http2(const SSL* connection) {
  const SSL_CIPHER* cipher = SSL_get_pending_cipher(connection);
  return SSL_version(connection) >= TLS1_3_VERSION ||
         (cipher != nullptr && SSL_CIPHER_is_aead(cipher) == 1);
}

// h2, else http/1.1; a client that offers only others is told so by an alert.
int select_alpn(SSL* connection, const unsigned char** out, unsigned char* out_size,
                const unsigned char* in, unsigned in_size, void*) {
  unsigned char* chosen = nullptr;
  const std::string_view ours = fit_for_http2(connection) ? kAlpnBoth : kAlpn;
  if (SSL_select_next_proto(&chosen, out_size, bytes_of(ours), static_cast<unsigned>(ours.size()),
                            in, in_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

void free_name(void*, void* name, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<std::string*>(name);
}

int name_index() {
  static const int kIndex = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_name);
  return kIndex;
}

// Every ClientHello of the connection, a second one after a HelloRetryRequest included, must ask
// for the name that the certificate is for; a client without SNI meets the check of the
// certificate's name.
int check_name(SSL* connection, int* alert, void*) {
  const char* asked = SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
  if (asked == nullptr) return SSL_TLSEXT_ERR_OK;
  std::string_view name(asked);
  if (name.ends_with('.')) name.remove_suffix(1);
  const auto* expected =
      static_cast<std::string*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), name_index()));
  if (expected != nullptr && same_text(name, *expected)) return SSL_TLSEXT_ERR_OK;
  *alert = SSL_AD_UNRECOGNIZED_NAME;
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

}  // namespace

std::unexpected<base::Error> openssl_error(std::string_view where) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return base::fail(base::Kind::system, std::string(where), text.data(), {});
}

base::Result<TlsContext> bare_context(const SSL_METHOD* method) {
  TlsContext context(SSL_CTX_new(method), [](SSL_CTX* old) { SSL_CTX_free(old); });
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set1_groups_list(context.get(), "X25519:P-256:P-384") != 1 ||
      SSL_CTX_set_max_early_data(context.get(), 0) != 1) {
    return openssl_error("TLS context");
  }
  SSL_CTX_set_security_level(context.get(), 2);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

base::Result<TlsContext> leaf_context(std::string_view host, X509* leaf, EVP_PKEY* key) {
  auto context = TRY(bare_context(TLS_server_method()));
  SSL_CTX* raw = context.get();
  if (SSL_CTX_use_certificate(raw, leaf) != 1 || SSL_CTX_use_PrivateKey(raw, key) != 1) {
    return openssl_error("TLS context");
  }
  auto name = std::make_unique<std::string>(host);
  if (SSL_CTX_set_ex_data(raw, name_index(), name.get()) != 1) return openssl_error("TLS context");
  [[maybe_unused]] const auto* owned = name.release();
  SSL_CTX_set_tlsext_servername_callback(raw, check_name);
  SSL_CTX_set_alpn_select_cb(raw, select_alpn, nullptr);
  // Ticket keys are this context's own, so a ticket is worth nothing for another name or run.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(raw, 1);
  SSL_CTX_set_verify(raw, SSL_VERIFY_NONE, nullptr);
  return context;
}

base::Result<TlsContext> client_context(std::string_view roots_pem, Verification verification) {
  auto context = TRY(bare_context(TLS_client_method()));
  X509_STORE* store = SSL_CTX_get_cert_store(context.get());
  Bio memory(BIO_new_mem_buf(roots_pem.data(), static_cast<int>(roots_pem.size())));
  if (!memory) return openssl_error("upstream roots");
  std::size_t roots = 0;
  while (Certificate root{PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, root.get()) != 1) return openssl_error("upstream roots");
    ++roots;
  }
  const bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (verification == Verification::required && (roots == 0 || !whole)) {
    return base::bad_input("upstream roots",
                           roots == 0 ? "no certificate in them" : "a certificate does not parse",
                           "PEM certificates");
  }
  // 0 is success in this one call.
  if (SSL_CTX_set_alpn_protos(context.get(), bytes_of(kAlpn),
                              static_cast<unsigned>(kAlpn.size())) != 0) {
    return openssl_error("TLS context");
  }
  SSL_CTX_set_verify(context.get(),
                     verification == Verification::required ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                     nullptr);
  return context;
}

base::Status expect_peer(SSL* connection, std::string_view host) {
  const std::string name(host);
  X509_VERIFY_PARAM* parameters = SSL_get0_param(connection);
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (is_address(name)) {
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) != 1)
      return openssl_error("expected peer");
    return {};
  }
  if (name.empty() || X509_VERIFY_PARAM_set1_host(parameters, name.data(), name.size()) != 1 ||
      SSL_set_tlsext_host_name(connection, name.c_str()) != 1) {
    return openssl_error("expected peer");
  }
  return {};
}

base::Status present(SSL* connection, std::string_view pem) {
  // Without this OpenSSL asks a terminal for the password of a locked key.
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const auto text = [&pem] {
    return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  };
  const auto refused = [](const char* what) {
    ERR_clear_error();
    return base::bad_input("client certificate", what, "PEM with a key and its certificate");
  };
  const Bio keys = text();
  const Key key(PEM_read_bio_PrivateKey(keys.get(), nullptr, no_password, nullptr));
  if (!key) return refused("no private key that can be read");
  const Bio certificates = text();
  const Certificate leaf(PEM_read_bio_X509(certificates.get(), nullptr, no_password, nullptr));
  if (!leaf || SSL_use_certificate(connection, leaf.get()) != 1) return refused("no certificate");
  if (SSL_use_PrivateKey(connection, key.get()) != 1) {
    return refused("the key is not the certificate's");
  }
  while (const Certificate next{
      PEM_read_bio_X509(certificates.get(), nullptr, no_password, nullptr)}) {
    if (SSL_add1_chain_cert(connection, next.get()) != 1) return refused("a broken chain");
  }
  ERR_clear_error();
  return {};
}

base::Status offer_postgres(SSL* connection) {
  // 0 is success in this one call.
  if (SSL_set_alpn_protos(connection, bytes_of(kAlpnPostgres),
                          static_cast<unsigned>(kAlpnPostgres.size())) != 0) {
    return openssl_error("TLS");
  }
  return {};
}

// By the hash of the certificate's signature, where that is SHA-256 or better.
std::string end_point(const SSL* connection) {
  const Certificate certificate(SSL_get1_peer_certificate(connection));
  int hash = NID_undef;
  if (!certificate ||
      X509_get_signature_info(certificate.get(), &hash, nullptr, nullptr, nullptr) != 1) {
    ERR_clear_error();
    return {};
  }
  const EVP_MD* digest =
      hash == NID_md5 || hash == NID_sha1 ? EVP_sha256() : EVP_get_digestbynid(hash);
  if (digest == nullptr) return {};
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned size = 0;
  if (X509_digest(certificate.get(), digest, bytes.data(), &size) != 1) return {};
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

base::Status offer_http2(SSL* connection) {
  // 0 is success in this one call.
  if (SSL_set_alpn_protos(connection, bytes_of(kAlpnBoth),
                          static_cast<unsigned>(kAlpnBoth.size())) != 0) {
    return openssl_error("ALPN");
  }
  return {};
}

std::string_view agreed_protocol(const SSL* connection) {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(connection, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

std::string certificate_problem(const SSL* connection) {
  const long result = SSL_get_verify_result(connection);
  return result == X509_V_OK ? std::string{} : X509_verify_cert_error_string(result);
}

}  // namespace http
