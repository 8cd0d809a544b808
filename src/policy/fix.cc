// Writing the rule that would have allowed a refused request.
#include "policy/fix.h"

#include <fmt/format.h>

namespace policy {
namespace {

// Quoted for TOML; what is quoted here has no control character (hosts, methods, canonical paths).
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

bool is_token(std::string_view method) {
  if (method.empty() || method.size() > 32) return false;
  for (char c : method) {
    if (!(c >= 'A' && c <= 'Z') && c != '-') return false;
  }
  return true;
}

// The start of a rule for that host, port and scheme; "" where no rule lets the port carry it.
std::string place_of(const Request& request) {
  constexpr std::uint16_t kTls = 443;
  constexpr std::uint16_t kPlain = 80;
  const bool own = request.host.name == kHostName;
  const bool tls = request.scheme == Scheme::tls;
  if (!own && request.port == (tls ? kPlain : kTls)) return "";
  std::string out = fmt::format("[[egress]]\nhost = {}\n", quoted(request.host.name));
  if (own || request.port != kTls) out += fmt::format("ports = [{}]\n", request.port);
  if (!own && tls && request.port != kTls) out += "tls_only = true\n";
  return out;
}

// A path becomes a pattern that matches it alone; `*` stands encoded in a canonical path.
std::string inspected(const Request& request, const std::vector<std::string>& methods) {
  std::string list;
  for (const std::string& method : methods) {
    if (!is_token(method)) return "";
    list += (list.empty() ? "" : ", ") + quoted(method == "HEAD" ? "GET" : method);
  }
  std::string out = fmt::format("methods = [{}]\npaths = [{}]\n", list, quoted(request.path));
  if (request.path.contains("%2F")) out += "encoded_slash = true\n";
  return out;
}

}  // namespace

std::string fix_host(const Request& request) {
  std::string out = place_of(request);
  if (!out.empty() && request.scheme == Scheme::http && !request.path.empty())
    out += inspected(request, {request.method});
  return out;
}

std::string fix_raw(const Request& request) {
  const std::string& host = request.host.name;
  const std::string place = host.contains(':') ? "[" + host + "]" : host;
  return fmt::format("[[egress]]\ntcp = {}\n", quoted(fmt::format("{}:{}", place, request.port)));
}

std::string fix_request(const Request& request, const std::vector<std::string>& methods) {
  const std::string rest = inspected(request, methods);
  const std::string place = place_of(request);
  return rest.empty() || request.path.empty() || place.empty() ? "" : place + rest;
}

}  // namespace policy
