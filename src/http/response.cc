// Admission of response heads: what upstream says is read once, and malformed answers end in 502.
#include "http/response.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/text.h"
#include "http/syntax.h"

namespace http {

namespace {

// Of the connection, or a way around the gateway for the client's next request.
constexpr std::initializer_list<std::string_view> kStripped = {
    "connection", "keep-alive",     "te",        "trailer", "transfer-encoding",   "upgrade",
    "alt-svc",    "content-length", "report-to", "nel",     "reporting-endpoints", "alt-used"};

bool stripped(std::string_view name) {
  return std::ranges::find(kStripped, name) != kStripped.end() || name.starts_with("proxy-") ||
         name.starts_with("x-cerco-");
}

Parsed<void> take_status_line(std::string_view line, ResponseHead& head) {
  if (line.starts_with("HTTP/1.0 ")) {
    head.minor = 0;
  } else if (!line.starts_with("HTTP/1.1 ")) {
    return reject(502, "upstream-status", "the answer does not start with HTTP/1.1");
  }
  line.remove_prefix(9);
  const auto number = base::parse_number(line.substr(0, 3));
  if (line.size() < 3 || !number || *number < 100 || *number > 599 ||
      (line.size() > 3 && line[3] != ' ')) {
    return reject(502, "upstream-status", "the answer has no status of three digits");
  }
  head.status = static_cast<unsigned>(*number);
  if (head.status < 200 && head.minor == 0) {
    return reject(502, "upstream-status", "HTTP/1.0 has no interim answers");
  }
  head.phrase = line.size() > 4 ? line.substr(4) : std::string_view{};
  if (!all(head.phrase, kValue))
    return reject(502, "upstream-status", "the phrase has a control character");
  return {};
}

// Content-Length, once or repeated with the same value.
Parsed<std::optional<std::uint64_t>> stated_length(const std::vector<Field>& fields) {
  std::optional<std::uint64_t> length;
  for (const Field& field : fields) {
    if (field.name != "content-length") continue;
    const auto number = parse_length(field.value);
    if (!number || (length && *length != *number)) {
      return reject(502, "upstream-framing", "Content-Length is not one plain number");
    }
    length = number;
  }
  return length;
}

// RFC 9112 section 6.3.
Parsed<void> take_body(const std::vector<Field>& fields, const RequestHead& request,
                       ResponseHead& head) {
  const auto length = stated_length(fields);
  if (!length) return std::unexpected(length.error());
  const auto codings = std::ranges::count(fields, "transfer-encoding", &Field::name);
  if (codings > 0) {
    if (head.minor == 0 || *length)
      return reject(502, "upstream-framing", "the answer is framed in two ways");
    if (codings > 1 || !same_text(find_field(fields, "transfer-encoding")->value, "chunked")) {
      return reject(502, "upstream-framing", "the only transfer coding taken is chunked, once");
    }
  }
  if (head.status < 200 || head.status == 204) {
    if (codings > 0 || length->value_or(0) != 0) {
      return reject(502, "upstream-framing", "an answer that has no body states one");
    }
    return {};
  }
  if (head.status == 304 || request.method == "HEAD") {
    head.stated_length = *length;
    return {};
  }
  if (codings > 0) {
    head.body.framing = Framing::chunked;
  } else if (*length) {
    head.body = {Framing::length, **length};
  } else {
    head.body.framing = Framing::until_close;
    head.keep_alive = false;
  }
  return {};
}

// RFC 6455 section 4.2.2: Base64 of SHA-1 of the key and a fixed text.
std::string accept_value(std::string_view key) {
  const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1)
    return {};
  return base::base64({reinterpret_cast<const char*>(digest.data()), size});
}

Parsed<void> take_switch(const std::vector<Field>& fields, const std::vector<std::string>& options,
                         const RequestHead& request, ResponseHead& head) {
  if (head.status != 101) return {};
  const Field* key = find_field(request.fields, "sec-websocket-key");
  const Field* accept = find_field(fields, "sec-websocket-accept");
  const Field* upgrade = find_field(fields, "upgrade");
  const bool offered = find_field(request.fields, "sec-websocket-extensions") != nullptr ||
                       find_field(fields, "sec-websocket-extensions") == nullptr;
  if (!request.websocket || key == nullptr || accept == nullptr || upgrade == nullptr || !offered ||
      !same_text(upgrade->value, "websocket") ||
      std::ranges::find(options, "upgrade") == options.end() ||
      accept->value != accept_value(key->value)) {
    return reject(502, "upstream-switch",
                  "the answer switches to a protocol that was not asked for");
  }
  head.websocket = true;
  return {};
}

}  // namespace

bool interim(const ResponseHead& head) {
  return head.status < 200 && head.status != 101;
}

Parsed<ResponseHead> parse_response(std::string_view text, const RequestHead& request) {
  const auto parts = split_head(text);
  if (!parts) return reject(502, "upstream-head", "the head has no end");
  ResponseHead head;
  std::vector<Field> fields;
  std::vector<std::string> options;
  Parsed<void> step = take_status_line(parts->first, head);
  if (step) step = parse_fields(parts->lines, 502, fields);
  if (!step) {
    step.error().status = 502;
    return std::unexpected(std::move(step).error());
  }
  for (const Field& field : fields) {
    if (field.name == "connection" && !tokens(field.value, options)) {
      return reject(502, "connection", "Connection is not a list of names");
    }
  }
  // What an interim answer says of the connection is not the last word on it.
  head.keep_alive = head.status < 200 ||
                    (head.minor == 1 && std::ranges::find(options, "close") == options.end());
  step = take_body(fields, request, head);
  if (step) step = take_switch(fields, options, request, head);
  if (!step) return std::unexpected(std::move(step).error());
  for (Field& field : fields) {
    if (stripped(field.name) || std::ranges::find(options, field.name) != options.end()) continue;
    head.fields.push_back(std::move(field));
  }
  return head;
}

std::string write_response(const ResponseHead& head) {
  std::string out;
  out.reserve(512);
  out += fmt::format("HTTP/1.1 {} {}\r\n", head.status, head.phrase);
  write_fields(head.fields, out);
  const bool length = head.body.framing == Framing::length;
  if (length) out += fmt::format("Content-Length: {}\r\n", head.body.length);
  if (!length && head.stated_length)
    out += fmt::format("Content-Length: {}\r\n", *head.stated_length);
  if (head.body.framing == Framing::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (head.websocket) {
    out += "Upgrade: websocket\r\nConnection: Upgrade\r\n";
  } else if (!interim(head) && (!head.keep_alive || head.body.framing == Framing::until_close)) {
    out += "Connection: close\r\n";
  }
  out += "\r\n";
  return out;
}

}  // namespace http
