// The client's side of CONNECT.
#include "http/connect.h"

#include <fmt/format.h>

#include "base/base.h"
#include "http/syntax.h"

namespace http {

std::string connect_request(std::string_view authority, std::string_view credentials) {
  std::string out = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", authority);
  if (!credentials.empty()) {
    std::string encoded = base::base64(credentials);
    out.reserve(out.size() + encoded.size() + 64);  // no growth that leaves a copy behind
    out += "Proxy-Authorization: Basic ";
    out += encoded;
    out += "\r\n";
    base::wipe(encoded);
  }
  out += "\r\n";
  return out;
}

Parsed<unsigned> read_connect_answer(std::string_view head) {
  const auto text = split_head(head);
  constexpr std::size_t kLeast = std::string_view("HTTP/1.1 200").size();
  if (!text || text->first.size() < kLeast ||
      !(text->first.starts_with("HTTP/1.1 ") || text->first.starts_with("HTTP/1.0 "))) {
    return reject(502, "proxy-answer", "the proxy's answer is no HTTP/1");
  }
  const std::string_view digits = text->first.substr(9, 3);
  const bool ends = text->first.size() == kLeast || text->first[kLeast] == ' ';
  const auto status = base::parse_number(digits);
  if (!status || !ends || *status < 100 || *status > 599) {
    return reject(502, "proxy-answer", "the proxy's answer has no status");
  }
  return static_cast<unsigned>(*status);
}

}  // namespace http
