// Refusals as HTTP responses.
#include "http/refusal.h"

#include <fmt/format.h>

#include "base/json.h"

namespace http {

namespace {

// A token for a header value, whatever the reason holds.
std::string header_safe(std::string_view text) {
  std::string out;
  for (char c : text)
    out += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ? c : '-';
  return out;
}

std::string response(unsigned status, std::string_view reason, std::string_view body, After after,
                     bool head_only) {
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Cache-Control: no-store\r\nX-Cerco-Deny: {}\r\n",
      status, status_phrase(status), body.size(), header_safe(reason));
  if (status == 503) out += "Retry-After: 1\r\n";
  if (status == 407) out += "Proxy-Authenticate: Basic realm=\"cerco\"\r\n";
  if (after == After::close) out += "Connection: close\r\n";
  out += "\r\n";
  if (!head_only) out += body;
  return out;
}

}  // namespace

std::string refusal_body(const Refusal& refusal) {
  base::JsonObject object;
  object.add("reason", refusal.reason)
      .add("rule", refusal.rule)
      .add("host", refusal.host)
      .add("port", refusal.port)
      .add("method", refusal.method)
      .add("path", refusal.path);
  refusal.fix.empty() ? object.raw("fix", "null") : object.add("fix", refusal.fix);
  return object.text() + "\n";
}

std::string refusal_response(unsigned status, const Refusal& refusal, After after) {
  return response(status, refusal.reason, refusal_body(refusal), after, refusal.method == "HEAD");
}

std::string tunnel_response() {
  return "HTTP/1.1 200 Connection established\r\n\r\n";
}

std::string rejection_response(const Rejection& rejection) {
  const std::string body =
      base::JsonObject().add("reason", rejection.reason).add("text", rejection.text).text();
  return response(rejection.status, rejection.reason, body + "\n", After::close, false);
}

std::string_view status_phrase(unsigned status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 405:
      return "Method Not Allowed";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

}  // namespace http
