// Writing the rule that would have allowed a refused request.
#include "policy/fix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace policy {
namespace {

constexpr std::uint16_t kTls = 443;
constexpr std::uint16_t kPlain = 80;

// Quoted for TOML; what is quoted here has no control character (hosts, methods, canonical paths).
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

std::string list_of(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  for (const std::string& text : texts) items.push_back(quoted(text));
  return "[" + base::join(items, ", ") + "]";
}

bool is_token(std::string_view method) {
  if (method.empty() || method.size() > 32) return false;
  return std::ranges::all_of(method, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-'; });
}

// A rule for that host, port and scheme; nothing where no rule lets the port carry it.
std::optional<Egress> place_of(const Request& request) {
  const bool own = request.host.name == kHostName;
  const bool tls = request.scheme == Scheme::tls;
  if (!own && request.port == (tls ? kPlain : kTls)) return std::nullopt;
  Egress rule;
  rule.host = request.host.name;
  rule.ports = {request.port};
  rule.tls_only = !own && tls && request.port != kTls;
  return rule;
}

// Narrows the rule to the request; whether that can be. A path becomes a pattern that matches it
// alone; `*` stands encoded in a canonical path.
bool narrow(Egress& rule, const Request& request, const std::vector<std::string>& methods) {
  if (!std::ranges::all_of(methods, is_token)) return false;
  for (const std::string& method : methods) {
    rule.methods.push_back(method == "HEAD" ? "GET" : method);
  }
  rule.paths = {request.path};
  rule.encoded_slash = request.path.contains("%2F");
  return true;
}

}  // namespace

std::string rule_text(const Egress& rule) {
  if (!rule.tcp.empty()) return fmt::format("[[egress]]\ntcp = {}\n", quoted(rule.tcp));
  std::string out = fmt::format("[[egress]]\nhost = {}\n", quoted(rule.host));
  // The host's own services have no port by default.
  if (rule.host == kHostName || rule.ports != std::vector{kTls}) {
    out += fmt::format("ports = [{}]\n", fmt::join(rule.ports, ", "));
  }
  if (rule.tls_only) out += "tls_only = true\n";
  if (!rule.methods.empty()) out += fmt::format("methods = {}\n", list_of(rule.methods));
  if (!rule.paths.empty()) out += fmt::format("paths = {}\n", list_of(rule.paths));
  if (rule.encoded_slash) out += "encoded_slash = true\n";
  return out;
}

std::string fix_host(const Request& request) {
  std::optional<Egress> rule = place_of(request);
  if (!rule) return "";
  if (request.scheme == Scheme::http && !request.path.empty()) {
    narrow(*rule, request, {request.method});
  }
  return rule_text(*rule);
}

std::string fix_raw(const Request& request) {
  const std::string& host = request.host.name;
  const std::string place = host.contains(':') ? "[" + host + "]" : host;
  Egress rule;
  rule.tcp = fmt::format("{}:{}", place, request.port);
  return rule_text(rule);
}

std::string fix_request(const Request& request, const std::vector<std::string>& methods) {
  std::optional<Egress> rule = place_of(request);
  if (!rule || request.path.empty() || !narrow(*rule, request, methods)) return "";
  return rule_text(*rule);
}

}  // namespace policy
