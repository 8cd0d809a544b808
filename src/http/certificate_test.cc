// The authority, its leaves and the contexts, with real handshakes in memory.
#include "http/certificate.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <set>

#include "http/openssl.h"

namespace {

constexpr std::int64_t kDay = 86400;

std::int64_t now() {
  return std::time(nullptr);
}

http::Authority authority(std::string_view run) {
  auto made = http::Authority::make(run, 3600, now);
  EXPECT_TRUE(made);
  return std::move(*made);
}

struct Outcome {
  bool done = false;
  std::string problem;  // of the certificate
  std::string alpn;
  bool resumed = false;
  bool early_data = false;
  http::Certificate peer;
  std::unique_ptr<SSL_SESSION, http::Freer<SSL_SESSION_free>> session;
};

using Connection = std::unique_ptr<SSL, http::Freer<SSL_free>>;

// Shakes hands in memory, then sends one byte each way so that tickets arrive.
Outcome shake(SSL_CTX* server_context, Connection client) {
  Outcome out;
  Connection server(SSL_new(server_context));
  BIO* client_bio = nullptr;
  BIO* server_bio = nullptr;
  BIO_new_bio_pair(&client_bio, 1 << 16, &server_bio, 1 << 16);
  SSL_set_bio(client.get(), client_bio, client_bio);
  SSL_set_bio(server.get(), server_bio, server_bio);
  SSL_set_connect_state(client.get());
  SSL_set_accept_state(server.get());
  for (int i = 0; i < 10 && !out.done; ++i) {
    const int a = SSL_do_handshake(client.get());
    const int b = SSL_do_handshake(server.get());
    out.done = a == 1 && b == 1;
  }
  out.problem = http::certificate_problem(client.get());
  if (!out.done) return out;
  char byte = 'x';
  SSL_write(server.get(), &byte, 1);
  SSL_read(client.get(), &byte, 1);
  const unsigned char* alpn = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(client.get(), &alpn, &size);
  out.alpn.assign(reinterpret_cast<const char*>(alpn), size);
  out.resumed = SSL_session_reused(client.get()) == 1;
  out.peer.reset(SSL_get1_peer_certificate(client.get()));
  out.session.reset(SSL_get1_session(client.get()));
  out.early_data = SSL_SESSION_get_max_early_data(out.session.get()) > 0;
  SSL_shutdown(client.get());
  SSL_shutdown(server.get());
  return out;
}

// A client of ours that trusts `roots` and wants `host`.
Connection client(const std::string& roots, std::string_view host,
                  http::Verification verification = http::Verification::required) {
  auto context = http::client_context(roots, verification);
  EXPECT_TRUE(context) << context.error().line();
  Connection connection(SSL_new(context->get()));
  EXPECT_TRUE(http::expect_peer(connection.get(), host));
  return connection;
}

Outcome visit(http::Authority& ca, std::string_view leaf, const std::string& roots,
              std::string_view host,
              http::Verification verification = http::Verification::required) {
  auto context = ca.server_context(leaf);
  EXPECT_TRUE(context) << context.error().line();
  return shake(context->get(), client(roots, host, verification));
}

TEST(Certificate, NamesAndAddressesAreTrustedByTheAuthorityAlone) {
  auto ca = authority("aaaaaaaaaaaa");
  auto other = authority("bbbbbbbbbbbb");
  const std::string long_name = std::string(60, 'a') + "." + std::string(60, 'b') + ".test";
  for (const std::string& host : {std::string("api.test"), long_name, std::string("a_b.test"),
                                  std::string("10.1.2.3"), std::string("2001:db8::1")}) {
    EXPECT_TRUE(visit(ca, host, ca.pem(), host).done) << host;
  }
  EXPECT_EQ(visit(ca, "api.test", ca.pem(), "api.test").alpn, "http/1.1");
  EXPECT_FALSE(visit(ca, "api.test", other.pem(), "api.test").done);
}

// N181: a certificate that is wrong ends the handshake before any HTTP byte; positive control: off.
TEST(Certificate, N181UpstreamIsVerified) {
  auto ca = authority("aaaaaaaaaaaa");
  auto other = authority("bbbbbbbbbbbb");
  const auto untrusted = visit(ca, "api.test", other.pem(), "api.test");
  EXPECT_FALSE(untrusted.done);
  EXPECT_NE(untrusted.problem, "");
  auto context = ca.server_context("10.1.2.3");
  ASSERT_TRUE(context);
  EXPECT_FALSE(shake(context->get(), client(ca.pem(), "10.9.9.9")).done);
  auto old = http::Authority::make("cccccccccccc", 3600, [] { return now() - 90 * kDay; });
  ASSERT_TRUE(old);
  const auto expired = visit(*old, "api.test", old->pem(), "api.test");
  EXPECT_FALSE(expired.done);
  EXPECT_NE(expired.problem.find("expired"), std::string::npos);
  EXPECT_TRUE(visit(ca, "api.test", other.pem(), "api.test", http::Verification::off).done);
}

TEST(Certificate, RootsMustBeThere) {
  EXPECT_FALSE(http::client_context("", http::Verification::required));
  auto ca = authority("aaaaaaaaaaaa");
  EXPECT_FALSE(http::client_context(
      ca.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
      http::Verification::required));
  EXPECT_TRUE(http::client_context("# a comment\n" + ca.pem() + ca.pem() + "\n",
                                   http::Verification::required));
}

// N66: a ticket is worth nothing for another name; N65: and there is no early data.
TEST(Certificate, N65N66TicketsAreBoundToTheirName) {
  auto ca = authority("aaaaaaaaaaaa");
  auto a = ca.server_context("a.test");
  auto b = ca.server_context("b.test");
  ASSERT_TRUE(a && b);
  const auto first = shake(a->get(), client(ca.pem(), "a.test"));
  ASSERT_TRUE(first.done);
  EXPECT_FALSE(first.early_data);
  const auto resume = [&](SSL_CTX* server, std::string_view host) {
    auto connection = client(ca.pem(), host);
    SSL_set_session(connection.get(), first.session.get());
    return shake(server, std::move(connection));
  };
  EXPECT_TRUE(resume(a->get(), "a.test").resumed);
  EXPECT_FALSE(resume(b->get(), "b.test").resumed);
}

// N51 N62 N67: a context answers to its own name only.
TEST(Certificate, OtherNamesGetAnAlert) {
  auto ca = authority("aaaaaaaaaaaa");
  auto context = ca.server_context("a.test");
  ASSERT_TRUE(context);
  auto wrong = client(ca.pem(), "a.test", http::Verification::off);
  SSL_set_tlsext_host_name(wrong.get(), "b.test");
  EXPECT_FALSE(shake(context->get(), std::move(wrong)).done);
  auto upper = client(ca.pem(), "a.test");
  SSL_set_tlsext_host_name(upper.get(), "A.Test.");
  EXPECT_TRUE(shake(context->get(), std::move(upper)).done);
}

TEST(Certificate, Http2AndHttp11AreSpoken) {
  auto ca = authority("aaaaaaaaaaaa");
  auto context = ca.server_context("a.test");
  ASSERT_TRUE(context);
  const auto offering = [&](std::string_view alpn) {
    auto connection = client(ca.pem(), "a.test");
    SSL_set_alpn_protos(connection.get(), reinterpret_cast<const unsigned char*>(alpn.data()),
                        static_cast<unsigned>(alpn.size()));
    return shake(context->get(), std::move(connection));
  };
  EXPECT_EQ(offering("\x02h2\x08http/1.1").alpn, "h2");
  EXPECT_EQ(offering("\x08http/1.1").alpn, "http/1.1");
  EXPECT_EQ(offering("\x02h2").alpn, "h2");
  EXPECT_FALSE(offering("\x02h3").done);
  // A suite of TLS 1.2 that RFC 9113 bars from HTTP/2.
  auto old = client(ca.pem(), "a.test");
  SSL_set_max_proto_version(old.get(), TLS1_2_VERSION);
  SSL_set_cipher_list(old.get(), "ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0");
  const std::string both("\x02h2\x08http/1.1");
  SSL_set_alpn_protos(old.get(), reinterpret_cast<const unsigned char*>(both.data()),
                      static_cast<unsigned>(both.size()));
  EXPECT_EQ(shake(context->get(), std::move(old)).alpn, "http/1.1");
  const auto none = offering("");
  EXPECT_TRUE(none.done);
  EXPECT_EQ(none.alpn, "");
  auto tls11 = client(ca.pem(), "a.test");
  SSL_set_max_proto_version(tls11.get(), TLS1_1_VERSION);
  EXPECT_FALSE(shake(context->get(), std::move(tls11)).done);
  auto tls12 = client(ca.pem(), "a.test");
  SSL_set_max_proto_version(tls12.get(), TLS1_2_VERSION);
  EXPECT_TRUE(shake(context->get(), std::move(tls12)).done);
}

std::string extension_text(X509* certificate, int nid) {
  const int at = X509_get_ext_by_NID(certificate, nid, -1);
  if (at < 0) return "none";
  X509_EXTENSION* extension = X509_get_ext(certificate, at);
  http::Bio memory(BIO_new(BIO_s_mem()));
  X509V3_EXT_print(memory.get(), extension, 0, 0);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return (X509_EXTENSION_get_critical(extension) != 0 ? "critical " : "") +
         std::string(bytes, static_cast<std::size_t>(size));
}

// The rules of strict clients (Python 3.13, GnuTLS, Go, Schannel).
TEST(Certificate, LeavesAreWhatStrictClientsWant) {
  auto ca = authority("aaaaaaaaaaaa");
  http::Bio memory(BIO_new_mem_buf(ca.pem().data(), static_cast<int>(ca.pem().size())));
  http::Certificate root(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
  ASSERT_TRUE(root);
  EXPECT_EQ(extension_text(root.get(), NID_basic_constraints), "critical CA:TRUE, pathlen:0");
  EXPECT_EQ(extension_text(root.get(), NID_key_usage), "critical Certificate Sign, CRL Sign");
  const auto leaf = visit(ca, "api.test", ca.pem(), "api.test").peer;
  ASSERT_TRUE(leaf);
  EXPECT_EQ(extension_text(leaf.get(), NID_subject_alt_name), "DNS:api.test");
  EXPECT_EQ(extension_text(leaf.get(), NID_basic_constraints), "critical CA:FALSE");
  EXPECT_EQ(extension_text(leaf.get(), NID_key_usage), "critical Digital Signature");
  EXPECT_EQ(extension_text(leaf.get(), NID_ext_key_usage), "TLS Web Server Authentication");
  EXPECT_EQ(extension_text(leaf.get(), NID_subject_key_identifier), "none");
  EXPECT_EQ(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(leaf.get()),
                                  X509_get0_subject_key_id(root.get())),
            0);
  EXPECT_LT(X509_cmp_current_time(X509_get0_notBefore(leaf.get())), 0);
  int days = 0;
  int seconds = 0;
  ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(leaf.get()), X509_get0_notAfter(leaf.get()));
  EXPECT_LE(days, 99);
  const auto address = visit(ca, "10.1.2.3", ca.pem(), "10.1.2.3").peer;
  EXPECT_EQ(extension_text(address.get(), NID_subject_alt_name), "IP Address:10.1.2.3");
  const std::string long_name = std::string(60, 'a') + ".long.test";
  const auto unnamed = visit(ca, long_name, ca.pem(), long_name).peer;
  EXPECT_EQ(extension_text(unnamed.get(), NID_subject_alt_name), "critical DNS:" + long_name);
  EXPECT_EQ(X509_NAME_entry_count(X509_get_subject_name(unnamed.get())), 0);
  EXPECT_NE(authority("bbbbbbbbbbbb").pem(), ca.pem());
}

TEST(Certificate, CacheKeepsTheLatestAndRenews) {
  std::int64_t time = now();
  auto ca = http::Authority::make("aaaaaaaaaaaa", 30 * kDay, [&time] { return time; });
  ASSERT_TRUE(ca);
  const auto first = ca->server_context("host0.test");
  ASSERT_TRUE(first);
  for (int i = 1; i < 256; ++i)
    ASSERT_TRUE(ca->server_context("host" + std::to_string(i) + ".test"));
  EXPECT_EQ(*ca->server_context("host0.test"), *first);
  ASSERT_TRUE(ca->server_context("host256.test"));
  EXPECT_EQ(*ca->server_context("host0.test"), *first);
  for (int i = 1; i < 257; ++i)
    ASSERT_TRUE(ca->server_context("other" + std::to_string(i) + ".test"));
  EXPECT_NE(*ca->server_context("host0.test"), *first);
  const auto second = ca->server_context("host0.test");
  time += 7 * kDay;
  EXPECT_NE(*ca->server_context("host0.test"), *second);
}

}  // namespace
