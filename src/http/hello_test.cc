// The ClientHello reader: real hellos, hellos in pieces, and hellos that lie (N51-N66).
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "http/http.h"

namespace {

using http::HelloKind;

std::string number(std::size_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = size; i > 0; --i) out += static_cast<char>(value >> (8 * (i - 1)));
  return out;
}
std::string sized(std::string_view bytes, std::size_t size) {
  return number(bytes.size(), size) + std::string(bytes);
}
std::string extension(std::size_t type, std::string_view bytes) {
  return number(type, 2) + sized(bytes, 2);
}
std::string name_entry(std::string_view name, std::size_t type = 0) {
  return number(type, 1) + sized(name, 2);
}
std::string sni(std::string_view name) {
  return extension(0, sized(name_entry(name), 2));
}

std::string message(std::string_view extensions) {
  const std::string body = std::string("\x03\x03") + std::string(32, 'r') + sized("", 1) +
                           sized("\x13\x01", 2) + sized(std::string(1, '\0'), 1) +
                           sized(extensions, 2);
  return "\x01" + sized(body, 3);
}
// The handshake message in records of `step` bytes.
std::string records(std::string_view handshake, std::size_t step) {
  std::string out;
  for (; !handshake.empty(); handshake.remove_prefix(std::min(step, handshake.size()))) {
    out += std::string("\x16\x03\x01") + sized(handshake.substr(0, step), 2);
  }
  return out;
}
std::string hello(std::string_view extensions) {
  return records(message(extensions), 16384);
}

// "NAME" of a good hello, else what is wrong.
std::string name_of(std::string_view bytes) {
  const auto result = http::read_hello(bytes);
  if (result.kind == HelloKind::hello) return result.hello.server_name;
  return result.kind == HelloKind::malformed ? "malformed: " + result.reason
         : result.kind == HelloKind::not_tls ? "not TLS"
                                             : "more";
}

// The first flight of a real client.
std::string real_hello(const char* name, std::string_view alpn) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* connection = SSL_new(context);
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(connection, BIO_new(BIO_s_mem()), out);
  if (name != nullptr) SSL_set_tlsext_host_name(connection, name);
  SSL_set_alpn_protos(connection, reinterpret_cast<const unsigned char*>(alpn.data()),
                      static_cast<unsigned>(alpn.size()));
  SSL_connect(connection);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  std::string text(bytes, static_cast<std::size_t>(size));
  SSL_free(connection);
  SSL_CTX_free(context);
  return text;
}

TEST(Hello, RealClient) {
  const auto result = http::read_hello(real_hello("API.Example.com", "\x02h2\x08http/1.1"));
  ASSERT_EQ(result.kind, HelloKind::hello) << result.reason;
  EXPECT_EQ(result.hello.server_name, "api.example.com");  // N60
  EXPECT_EQ(result.hello.alpn, (std::vector<std::string>{"h2", "http/1.1"}));
  EXPECT_TRUE(result.hello.tls13);
  EXPECT_TRUE(result.hello.ecdsa_p256);
  EXPECT_FALSE(result.hello.ech);
  EXPECT_FALSE(result.hello.early_data);
}

// N57: no name is a hello without one, for the caller to refuse.
TEST(Hello, N57WithoutName) {
  const auto result = http::read_hello(real_hello(nullptr, ""));
  EXPECT_EQ(result.kind, HelloKind::hello);
  EXPECT_EQ(result.hello.server_name, "");
}

// A second hello in the same flight, in a record of its own, changes nothing.
TEST(Hello, N62OnlyTheFirstCounts) {
  const std::string first = real_hello("a.test", "");
  const std::string second = real_hello("b.test", "");
  EXPECT_EQ(name_of(first + second), "a.test");
  EXPECT_EQ(name_of(second + first), "b.test");
}

// N61: in pieces of any size, on the wire and in records.
TEST(Hello, N61InPieces) {
  const std::string whole = real_hello("a.test", "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_EQ(name_of(std::string_view(whole).substr(0, size)), "more") << size;
  }
  EXPECT_EQ(name_of(whole), "a.test");
  EXPECT_EQ(name_of(whole + "anything behind it"), "a.test");
  const std::string bytes = records(message(sni("a.test")), 1);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_EQ(name_of(std::string_view(bytes).substr(0, size)), "more") << size;
  }
  EXPECT_EQ(name_of(bytes), "a.test");
  const std::string padded = message(sni("a.test") + extension(21, std::string(15'000, '\0')));
  EXPECT_EQ(name_of(records(padded, 16'384)), "a.test");
  EXPECT_EQ(name_of(records(padded, 100)), "a.test");
  EXPECT_EQ(name_of(records(message(extension(21, std::string(20'000, '\0'))), 16'384)),
            "malformed: length");
  EXPECT_EQ(name_of(records(padded, 10)), "malformed: length");
}

// N59: names that are none.
TEST(Hello, N59Names) {
  for (const char* name :
       {"127.0.0.1", "1.2.3.4.", "0x7f.1", "0x7f000001", "2130706433", "::1", "a..b", ".a", "a b",
        "a/b", "a:443", "\xc3\xa4.test", "%61.test", "", "."}) {
    EXPECT_EQ(name_of(hello(sni(name))), "malformed: sni") << name;
  }
  EXPECT_EQ(name_of(hello(sni(std::string_view("api.test\0.evil", 14)))), "malformed: sni");
  EXPECT_EQ(name_of(hello(sni(std::string(64, 'a') + ".test"))), "malformed: sni");
  std::string longest;
  while (longest.size() < 256) longest += "abcdefg.";
  EXPECT_EQ(name_of(hello(sni(longest + "test"))), "malformed: sni");
  EXPECT_EQ(name_of(hello(sni("api.test."))), "api.test");
  EXPECT_EQ(name_of(hello(sni("a_b.test"))), "a_b.test");  // N40
  EXPECT_EQ(name_of(hello(extension(0, sized(name_entry("a.test") + name_entry("b.test"), 2)))),
            "malformed: two-names");
  EXPECT_EQ(name_of(hello(extension(0, sized(name_entry("a.test", 1), 2)))), "malformed: sni");
  EXPECT_EQ(name_of(hello(sni("a.test") + sni("b.test"))), "malformed: extension-twice");
  EXPECT_EQ(name_of(hello(extension(0, ""))), "malformed: sni");
  EXPECT_EQ(name_of(hello(extension(0, sized(name_entry("a.test"), 2) + "x"))), "malformed: sni");
}

// N64 N65: what the caller decides on.
TEST(Hello, N64N65EchAndEarlyData) {
  const auto result = http::read_hello(
      hello(sni("cloudflare-ech.com") + extension(0xfe0d, "x") + extension(42, "")));
  ASSERT_EQ(result.kind, HelloKind::hello);
  EXPECT_TRUE(result.hello.ech);
  EXPECT_TRUE(result.hello.early_data);
}

// N136: bytes that are not TLS are told apart at once.
TEST(Hello, N136NotTls) {
  EXPECT_EQ(name_of("SSH-2.0-OpenSSH"), "not TLS");
  EXPECT_EQ(name_of("GET / HTTP/1.1\r\n"), "not TLS");
  EXPECT_EQ(name_of(std::string_view("\x80\x2e\x01\x03\x01", 5)), "not TLS");
}

TEST(Hello, MalformedRecordsAndMessages) {
  EXPECT_EQ(name_of("\x16\x02"), "malformed: version");
  EXPECT_EQ(name_of(std::string("\x16\x03\x01\x00\x00", 5)), "malformed: record");
  EXPECT_EQ(name_of(std::string("\x16\x03\x01\x00\x01\x02", 6)), "malformed: record");
  EXPECT_EQ(name_of(std::string("\x16\x03\x01\x40\x01", 5)), "malformed: record");
  EXPECT_EQ(name_of(std::string("\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9)), "malformed: length");
  // A record that has more than the hello in it, and one that is not a handshake in between.
  EXPECT_EQ(name_of(records(message(sni("a.test")) + "x", 16'384)), "malformed: record");
  std::string mixed = records(message(sni("a.test")), 20);
  mixed[25] = 0x15;
  EXPECT_EQ(name_of(mixed), "malformed: record");
  // Every cut inside the message with its length put right is malformed, never read past its end.
  const std::string body = message(sni("a.test")).substr(4);
  for (std::size_t size = 0; size < body.size(); ++size) {
    const std::string cut = "\x01" + sized(std::string_view(body).substr(0, size), 3);
    const auto kind = http::read_hello(records(cut, 16'384)).kind;
    // Without any extensions at all it is a hello of old.
    EXPECT_EQ(kind, size == 41 ? HelloKind::hello : HelloKind::malformed) << size;
  }
}

TEST(Hello, AlertIsOneFatalRecord) {
  EXPECT_EQ(http::access_denied_alert(), std::string("\x15\x03\x03\x00\x02\x02\x31", 7));
}

}  // namespace
