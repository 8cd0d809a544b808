// The one canonical form of a host name, and the names that are never resolved.
#include <algorithm>
#include <array>

#include "policy/policy.h"

namespace policy {
namespace {

constexpr std::size_t kMaxHost = 253;
constexpr std::size_t kMaxLabel = 63;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}
bool is_label_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

// What some parsers take for a number at the end of an address ("ends in a number" of the WHATWG
// URL standard): all digits, or 0x and hexadecimal digits.
bool looks_like_number(std::string_view label) {
  if (std::ranges::all_of(label, is_digit)) return true;
  return label.starts_with("0x") && std::ranges::all_of(label.substr(2), is_hex);
}

std::unexpected<base::Error> bad_host(std::string_view text, std::string what) {
  return base::bad_input(base::printable(text.substr(0, 300)), std::move(what),
                         "expected a host name of letters, digits, - and _, or an IP address");
}

base::Result<Host> literal_v6(std::string_view text, std::string_view inside) {
  const auto address = parse_address(inside);
  if (!address || !address->v6) return bad_host(text, "no IPv6 address");
  return Host{to_string(*address), true};
}

base::Status check_labels(std::string_view text, std::string_view name) {
  for (std::string_view label : base::split(name, '.')) {
    if (label.empty()) return bad_host(text, "an empty label");
    if (label.size() > kMaxLabel) return bad_host(text, "a label of more than 63 bytes");
    if (!std::ranges::all_of(label, is_label_character)) {
      return bad_host(text, "a character that no host name has");
    }
  }
  return {};
}

// D4 of the reference: names that mean something to a resolver, a cluster or a container engine
// only.
constexpr std::array<std::string_view, 12> kLocalSuffixes = {
    "localhost", "localdomain", "local", "internal", "home.arpa", "lan",
    "intranet",  "corp",        "svc",   "onion",    "arpa",      "flycast"};
// D3: metadata services that answer under a name, wherever their address lies.
constexpr std::array<std::string_view, 10> kMetadataNames = {
    "metadata.google.internal",  "metadata.goog",
    "metadata.azure.internal",   "metadata.oraclecloud.com",
    "metadata.tencentyun.com",   "api.metadata.cloud.ibm.com",
    "api.service.softlayer.com", "metadata.platformequinix.com",
    "metadata.packet.net",       "instance-data.ec2.internal"};

bool below(std::string_view host, std::string_view suffix) {
  return host == suffix || (host.ends_with(suffix) && host[host.size() - suffix.size() - 1] == '.');
}

}  // namespace

base::Result<Host> canonical_host(std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return bad_host(text, "an unclosed bracket");
    return literal_v6(text, text.substr(1, text.size() - 2));
  }
  if (text.contains(':')) return literal_v6(text, text);
  std::string name = base::to_lower(text);
  if (name.ends_with('.')) name.pop_back();
  if (name.empty()) return bad_host(text, "an empty host");
  if (name.size() > kMaxHost) return bad_host(text, "a host of more than 253 bytes");
  TRY(check_labels(text, name));
  const auto dot = name.rfind('.');
  const std::string_view last =
      std::string_view(name).substr(dot == std::string::npos ? 0 : dot + 1);
  if (!looks_like_number(last)) return Host{std::move(name), false};
  // inet_pton(3) takes dotted quads without leading zeros alone.
  const auto address = parse_address(name);
  if (!address) return bad_host(text, "a number that is no dotted quad");
  return Host{to_string(*address), true};
}

std::string blocked_name(std::string_view host) {
  if (host == kHostName) return "";
  if (std::ranges::any_of(kMetadataNames,
                          [&](std::string_view name) { return below(host, name); })) {
    return "metadata";
  }
  if (!host.contains('.')) return "single-label";
  if (host.starts_with("wpad.")) return "local-name";
  for (std::string_view suffix : kLocalSuffixes) {
    if (below(host, suffix)) return "local-name";
  }
  return "";
}

}  // namespace policy
