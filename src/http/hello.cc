// Reads a TLS ClientHello (RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3).
#include "http/hello.h"

#include <algorithm>

#include "base/text.h"
#include "http/syntax.h"

namespace http {

namespace {

// Reads big-endian fields; after the first that does not fit everything is empty and good() false.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::size_t number(std::size_t size) {
    std::size_t value = 0;
    for (char c : take(size)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  // A vector with a length of `size` bytes in front.
  std::string_view vector(std::size_t size) { return take(number(size)); }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

enum : std::size_t {
  kServerName = 0,
  kSignatureAlgorithms = 13,
  kAlpn = 16,
  kEarlyData = 42,
  kSupportedVersions = 43,
  kEch = 0xfe0d,
};

HelloResult malformed(std::string_view reason) {
  return {HelloKind::malformed, {}, std::string(reason)};
}

// A host name in lower case, or "" when it is none: labels of letters, digits, - and _, the last of
// which is no number (that would be an address to some parsers).
std::string host_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > 253 || !all(text, kHostByte)) return {};
  std::string name = base::to_lower(text);
  const auto labels = base::split(name, '.');
  if (std::ranges::any_of(labels, [](auto label) { return label.empty() || label.size() > 63; }))
    return {};
  const std::string_view last = labels.back();
  const bool digits = last.find_first_not_of("0123456789") == std::string_view::npos;
  const bool hex = last.starts_with("0x") &&
                   last.find_first_not_of("0123456789abcdef", 2) == std::string_view::npos;
  return digits || hex ? std::string{} : name;
}

// "" when well-formed.
std::string_view take_server_name(std::string_view bytes, Hello& hello) {
  Cursor outer(bytes);
  Cursor list(outer.vector(2));
  const std::size_t type = list.number(1);
  const std::string_view name = list.vector(2);
  if (!outer.good() || !outer.empty() || !list.good()) return "sni";
  if (!list.empty()) return "two-names";
  hello.server_name = type == 0 ? host_name(name) : std::string{};
  return hello.server_name.empty() ? "sni" : "";
}

std::string_view take_alpn(std::string_view bytes, Hello& hello) {
  Cursor outer(bytes);
  Cursor list(outer.vector(2));
  if (!outer.good() || !outer.empty() || list.empty()) return "alpn";
  while (!list.empty()) {
    const std::string_view protocol = list.vector(1);
    if (!list.good() || protocol.empty()) return "alpn";
    hello.alpn.emplace_back(protocol);
  }
  return "";
}

// Whether a list of two-byte values behind a length of `prefix` bytes has `wanted`; "" when
// well-formed.
std::string_view take_pairs(std::string_view bytes, std::size_t prefix, std::size_t wanted,
                            bool& has) {
  Cursor outer(bytes);
  Cursor list(outer.vector(prefix));
  if (!outer.good() || !outer.empty() || list.empty()) return "extension";
  while (!list.empty()) {
    if (list.number(2) == wanted && list.good()) has = true;
    if (!list.good()) return "extension";
  }
  return "";
}

std::string_view take_extension(std::size_t type, std::string_view bytes, Hello& hello) {
  switch (type) {
    case kServerName:
      return take_server_name(bytes, hello);
    case kAlpn:
      return take_alpn(bytes, hello);
    case kSignatureAlgorithms:
      return take_pairs(bytes, 2, 0x0403, hello.ecdsa_p256);
    case kSupportedVersions:
      return take_pairs(bytes, 1, 0x0304, hello.tls13);
    case kEarlyData:
      hello.early_data = true;
      return "";
    case kEch:
      hello.ech = true;
      return "";
    default:
      return "";
  }
}

HelloResult parse_hello(std::string_view body) {
  Cursor cursor(body);
  Hello hello;
  if (cursor.number(1) != 3) return malformed("version");
  cursor.take(1 + 32);  // minor version, random
  const std::string_view session = cursor.vector(1);
  const std::string_view suites = cursor.vector(2);
  const std::string_view compressions = cursor.vector(1);
  if (!cursor.good() || session.size() > 32 || suites.empty() || suites.size() % 2 != 0 ||
      compressions.empty()) {
    return malformed("hello");
  }
  if (cursor.empty()) return {HelloKind::hello, hello, {}};
  Cursor extensions(cursor.vector(2));
  if (!cursor.good() || !cursor.empty()) return malformed("extensions");
  std::vector<std::size_t> seen;
  while (!extensions.empty()) {
    const std::size_t type = extensions.number(2);
    const std::string_view bytes = extensions.vector(2);
    if (!extensions.good()) return malformed("extensions");
    if (std::ranges::find(seen, type) != seen.end() || seen.size() == 128)
      return malformed("extension-twice");
    seen.push_back(type);
    if (const auto reason = take_extension(type, bytes, hello); !reason.empty())
      return malformed(reason);
  }
  return {HelloKind::hello, hello, {}};
}

}  // namespace

HelloResult read_hello(std::string_view bytes) {
  constexpr unsigned char kHandshake = 22;
  constexpr std::size_t kClientHello = 1;
  if (bytes.empty()) return {};
  if (static_cast<unsigned char>(bytes[0]) != kHandshake) return {HelloKind::not_tls, {}, {}};
  std::string message;
  for (std::string_view rest = bytes.substr(0, kMaxHello); !rest.empty();) {
    if (static_cast<unsigned char>(rest[0]) != kHandshake) return malformed("record");
    if (rest.size() > 1 && rest[1] != 3) return malformed("version");
    if (rest.size() < 5) break;
    Cursor header(rest.substr(3, 2));
    const std::size_t size = header.number(2);
    if (size == 0 || size > kMaxHello) return malformed("record");
    const std::string_view fragment = rest.substr(5, size);
    message += fragment;
    if (!message.empty() && message[0] != static_cast<char>(kClientHello))
      return malformed("record");
    if (message.size() >= 4) {
      Cursor length(std::string_view(message).substr(1, 3));
      const std::size_t whole = 4 + length.number(3);
      if (whole > kMaxHello) return malformed("length");
      if (message.size() - fragment.size() + size > whole) return malformed("record");
      if (message.size() == whole) return parse_hello(std::string_view(message).substr(4));
    }
    if (fragment.size() < size) break;
    rest.remove_prefix(5 + size);
  }
  return bytes.size() >= kMaxHello ? malformed("length") : HelloResult{};
}

std::string access_denied_alert() {
  return {"\x15\x03\x03\x00\x02\x02\x31", 7};
}

}  // namespace http
