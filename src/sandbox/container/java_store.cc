// JKS as sun.security.provider.JavaKeyStore reads it: big-endian counts, entries, a keyed SHA-1.
#include "sandbox/container/java_store.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace sandbox {
namespace {

constexpr std::uint32_t kMagic = 0xFEEDFEED;
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kTrusted = 2;
constexpr std::string_view kPassword = "changeit";
constexpr std::string_view kSalt = "Mighty Aphrodite";  // the format's own

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> shift & 0xff);
  }
}

void put_text(std::string& out, std::string_view text) {
  put(out, text.size(), 2);
  out += text;
}

using Words = std::array<std::uint32_t, 5>;

// One block of FIPS 180-4.
void mix(Words& state, std::string_view block) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t i = 0; i < 64; ++i) {
    w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(block[i]);
  }
  for (std::size_t i = 16; i < w.size(); ++i) {
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    std::uint32_t f = b ^ c ^ d;
    std::uint32_t k = i < 40 ? 0x6ED9EBA1 : 0xCA62C1D6;
    if (i < 20) {
      f = (b & c) | (~b & d);
      k = 0x5A827999;
    } else if (i >= 40 && i < 60) {
      f = (b & c) | (b & d) | (c & d);
      k = 0x8F1BBCDC;
    }
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const Words more = {a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += more[i];
}

// The format asks for SHA-1; nothing rests on it, since the password is known to all.
std::string sha1(std::string text) {
  const std::uint64_t bits = std::uint64_t{8} * text.size();
  text += static_cast<char>(0x80);
  while (text.size() % 64 != 56) text += '\0';
  put(text, bits, 8);
  Words state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  for (std::size_t at = 0; at < text.size(); at += 64) {
    mix(state, std::string_view(text).substr(at, 64));
  }
  std::string digest;
  for (const std::uint32_t word : state) put(digest, word, 4);
  return digest;
}

base::Result<std::vector<std::string>> certificates(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::vector<std::string> all;
  for (auto at = pem.find(kBegin); at != std::string_view::npos; at = pem.find(kBegin, at)) {
    at += kBegin.size();
    const auto end = pem.find(kEnd, at);
    if (end == std::string_view::npos) {
      return base::bad_input("trust bundle", "a certificate has no end", {});
    }
    std::string text;
    for (const char c : pem.substr(at, end - at)) {
      if (c != '\n' && c != '\r' && c != ' ' && c != '\t') text += c;
    }
    auto der = base::from_base64(text);
    if (!der) return base::bad_input("trust bundle", "a certificate is no base64", {});
    all.push_back(std::move(*der));
    at = end;
  }
  return all;
}

}  // namespace

base::Result<std::string> java_store(std::string_view pem) {
  const std::vector<std::string> all = TRY(certificates(pem));
  std::string out;
  put(out, kMagic, 4);
  put(out, kVersion, 4);
  put(out, all.size(), 4);
  std::size_t number = 0;
  for (const std::string& der : all) {
    put(out, kTrusted, 4);
    put_text(out, fmt::format("root-{}", ++number));
    put(out, 0, 8);  // when it was added
    put_text(out, "X.509");
    put(out, der.size(), 4);
    out += der;
  }
  std::string keyed;
  for (const char c : kPassword) {
    keyed += '\0';
    keyed += c;
  }
  keyed += kSalt;
  keyed += out;
  return out + sha1(std::move(keyed));
}

}  // namespace sandbox
