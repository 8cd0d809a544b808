// Admission of request heads: whatever two parsers could read differently is rejected here, and
// what is left is written anew.
#include "http/request.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/text.h"
#include "http/syntax.h"

namespace http {

namespace {

// Fields that end at this hop or that would tell upstream something about the client that only a
// proxy may.
constexpr std::initializer_list<std::string_view> kStripped = {
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "expect",
    "content-length", "http2-settings", "forwarded", "via", "x-real-ip", "true-client-ip",
    "x-client-ip", "client-ip", "alt-used", "early-data", "x-cluster-client-ip",
    // Overrides: upstream would act on another method or path than the policy judged.
    "x-http-method-override", "x-http-method", "x-method-override", "x-original-url",
    "x-rewrite-url", "x-original-method"};

// Fields that a CGI-style server must not be made to see twice under two spellings.
constexpr std::initializer_list<std::string_view> kProtected = {"authorization",
                                                                "cookie",
                                                                "x-api-key",
                                                                "api-key",
                                                                "apikey",
                                                                "private-token",
                                                                "x-auth-token",
                                                                "x-goog-api-key",
                                                                "x-amz-security-token",
                                                                "x-amz-date",
                                                                "x-amz-content-sha256",
                                                                "content-type",
                                                                "range"};

bool among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool stripped(std::string_view name) {
  return among(name, kStripped) || name.starts_with("proxy-") || name.starts_with("x-forwarded-") ||
         name.starts_with("x-cerco-");
}

bool is_protected(std::string_view name, const Admission& admission) {
  return stripped(name) || among(name, kProtected) ||
         std::ranges::find(admission.protected_names, name) != admission.protected_names.end();
}

// `x_api_key`, `authorization_` as CGI reads them: every underscore a dash, none at the edges.
std::string folded(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '_', '-');
  const auto first = out.find_first_not_of('-');
  if (first == std::string::npos) return {};
  return out.substr(first, out.find_last_not_of('-') - first + 1);
}

struct Authority {
  std::string host;
  std::optional<std::uint16_t> port;
  bool operator==(const Authority&) const = default;
};

// `host[:port]` of Host and of targets: no user info, no escapes, no empty port.
std::optional<Authority> parse_authority(std::string_view text) {
  Authority authority;
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    host = text.substr(0, close + 1);
    const std::string_view inner = host.substr(1, close - 1);
    if (inner.find(':') == std::string_view::npos ||
        inner.find_first_not_of("0123456789abcdefABCDEF:.") != std::string_view::npos) {
      return std::nullopt;
    }
    text.remove_prefix(close + 1);
    if (!text.empty()) {
      if (text[0] != ':') return std::nullopt;
      port = text.substr(1);
      if (port.empty()) return std::nullopt;
    }
  } else {
    const auto colon = text.rfind(':');
    if (colon != std::string_view::npos) {
      host = text.substr(0, colon);
      port = text.substr(colon + 1);
      if (port.empty()) return std::nullopt;
    }
    if (host.empty() || host.size() > 254 || !all(host, kHostByte)) return std::nullopt;
  }
  if (!port.empty()) {
    const auto number = base::parse_number(port);
    if (!number || *number == 0 || *number > 65535) return std::nullopt;
    authority.port = static_cast<std::uint16_t>(*number);
  }
  authority.host = base::to_lower(host);
  return authority;
}

// Escapes are two hex digits and never stand for a control character.
bool escapes_hold(std::string_view path) {
  for (auto at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    if (path.size() - at < 3 || !is(path[at + 1], kHexDigit) || !is(path[at + 2], kHexDigit))
      return false;
    if (path[at + 1] == '0' || path[at + 1] == '1') return false;
    if (path[at + 1] == '7' && (path[at + 2] == 'f' || path[at + 2] == 'F')) return false;
  }
  return true;
}

// Some frameworks take the method from a query parameter `_method`, under any escaping.
bool overrides_method(std::string_view query) {
  for (std::string_view parameter : base::split(query, '&')) {
    std::string name;
    for (std::size_t i = 0; i < parameter.size() && parameter[i] != '=' && parameter[i] != ';';
         ++i) {
      if (parameter[i] == '%' && parameter.size() - i > 2 && is(parameter[i + 1], kHexDigit) &&
          is(parameter[i + 2], kHexDigit)) {
        name += static_cast<char>(std::stoi(std::string(parameter.substr(i + 1, 2)), nullptr, 16));
        i += 2;
      } else {
        name += parameter[i];
      }
    }
    if (same_text(name, "_method")) return true;
  }
  return false;
}

Parsed<std::string> origin_form(std::string_view target) {
  const auto question = target.find('?');
  const std::string_view path = target.substr(0, question);
  if (!path.starts_with('/') || path.starts_with("//") || !all(path, kPath) ||
      !escapes_hold(path)) {
    return reject(400, "target", "the request target is not a plain path");
  }
  if (question != std::string_view::npos) {
    const std::string_view query = target.substr(question + 1);
    if (!all(query, kQuery))
      return reject(400, "target", "the query has a byte that is not allowed there");
    if (overrides_method(query)) return reject(400, "method-override", "_method in the query");
  }
  return std::string(target);
}

// Fills target, and host and port where the target has them.
Parsed<void> take_target(std::string_view target, Leg leg, RequestHead& head) {
  if (target.size() > kMaxTarget)
    return reject(414, "target-length", "the request target is longer than 16 KiB");
  if (head.method == "CONNECT") {
    const auto authority = parse_authority(target);
    if (leg != Leg::proxy) return reject(405, "connect", "CONNECT is not taken here");
    if (!authority || !authority->port) return reject(400, "target", "CONNECT wants HOST:PORT");
    head.target = base::to_lower(target);
    head.host = authority->host;
    head.port = authority->port;
    return {};
  }
  if (target == "*") {
    if (head.method != "OPTIONS") return reject(400, "target", "* is for OPTIONS");
    head.target = "*";
    return {};
  }
  if (target.starts_with('/')) {
    if (leg == Leg::proxy)
      return reject(400, "target", "the proxy wants http://HOST/PATH or CONNECT");
    auto origin = origin_form(target);
    if (!origin) return std::unexpected(std::move(origin).error());
    head.target = std::move(*origin);
    return {};
  }
  constexpr std::string_view kScheme = "http://";
  if (leg == Leg::tls || target.size() < kScheme.size() ||
      !same_text(target.substr(0, kScheme.size()), kScheme)) {
    return reject(400, "target", "this form of request target is not taken here");
  }
  target.remove_prefix(kScheme.size());
  const auto end = target.find_first_of("/?");
  const auto authority = parse_authority(target.substr(0, end));
  if (!authority)
    return reject(400, "target", "the authority in the target is not HOST or HOST:PORT");
  std::string rest(end == std::string_view::npos ? "" : target.substr(end));
  if (rest.empty() && head.method == "OPTIONS") {
    head.target = "*";
  } else {
    if (!rest.starts_with('/')) rest.insert(0, "/");
    auto origin = origin_form(rest);
    if (!origin) return std::unexpected(std::move(origin).error());
    head.target = std::move(*origin);
  }
  head.host = authority->host;
  head.port = authority->port;
  return {};
}

Parsed<void> take_request_line(std::string_view line, Leg leg, RequestHead& head) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) {
    return reject(400, "request-line", "the first line is not METHOD TARGET VERSION");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (method.empty() || method.size() > 64 || !all(method, kToken)) {
    return reject(400, "method", "the method is not a token");
  }
  if (target.empty() || target.find(' ') != std::string_view::npos) {
    return reject(400, "request-line", "the first line is not METHOD TARGET VERSION");
  }
  if (method == "PRI") return reject(505, "h2c", "HTTP/2 without TLS is not taken");
  if (version == "HTTP/1.0") {
    head.minor = 0;
  } else if (version != "HTTP/1.1") {
    return version.starts_with("HTTP/")
               ? reject(505, "version", "only HTTP/1.1 and HTTP/1.0 are taken")
               : reject(400, "request-line", "the first line has no HTTP version");
  }
  if (same_text(method, "TRACE") || same_text(method, "TRACK")) {
    return reject(405, "method", "TRACE and TRACK are not taken");
  }
  head.method = method;
  return take_target(target, leg, head);
}

Parsed<void> take_host(const std::vector<Field>& fields, RequestHead& head) {
  const Field* host = find_field(fields, "host");
  if (host == nullptr) {
    if (head.minor == 0) return {};
    return reject(400, "host", "there is no Host");
  }
  if (std::ranges::count(fields, "host", &Field::name) > 1)
    return reject(400, "host", "there are two Hosts");
  const auto authority = parse_authority(host->value);
  if (!authority) return reject(400, "host", "Host is not HOST or HOST:PORT");
  if (head.host.empty()) {
    head.host = authority->host;
    head.port = authority->port;
    return {};
  }
  const std::uint16_t common = head.method == "CONNECT" ? 443 : 80;
  if (authority->host != head.host ||
      authority->port.value_or(common) != head.port.value_or(common)) {
    return reject(400, "host", "Host and the target name different places");
  }
  return {};
}

Parsed<void> take_body(const std::vector<Field>& fields, Strictness strictness, RequestHead& head) {
  const auto lengths = std::ranges::count(fields, "content-length", &Field::name);
  const auto codings = std::ranges::count(fields, "transfer-encoding", &Field::name);
  if (strictness == Strictness::careless && codings > 0 && lengths > 0) {
    head.body = {Framing::length,
                 parse_length(find_field(fields, "content-length")->value).value_or(0)};
    head.fields.push_back(*find_field(fields, "transfer-encoding"));
    return {};
  }
  if (codings > 0) {
    if (head.minor == 0) return reject(400, "framing", "Transfer-Encoding in HTTP/1.0");
    if (lengths > 0) return reject(400, "framing", "Content-Length and Transfer-Encoding together");
    if (codings > 1 || !same_text(find_field(fields, "transfer-encoding")->value, "chunked")) {
      return reject(codings > 1 ? 400 : 501, "framing",
                    "the only transfer coding taken is chunked, once");
    }
    head.body.framing = Framing::chunked;
  } else if (lengths > 0) {
    const auto length = parse_length(find_field(fields, "content-length")->value);
    if (lengths > 1 || !length)
      return reject(400, "framing", "Content-Length is not one plain number");
    head.body = {Framing::length, *length};
  }
  if (head.method == "CONNECT" && (codings > 0 || lengths > 0))
    return reject(400, "framing", "CONNECT with a body");
  return {};
}

Parsed<void> take_expect(const std::vector<Field>& fields, RequestHead& head) {
  const Field* expect = find_field(fields, "expect");
  if (expect == nullptr || head.minor == 0) return {};
  if (std::ranges::count(fields, "expect", &Field::name) > 1 ||
      !same_text(expect->value, "100-continue")) {
    return reject(417, "expect", "the only expectation taken is 100-continue");
  }
  head.expect_continue = head.body.framing != Framing::none;
  return {};
}

// The value of a field that stands exactly once; else "".
std::string_view only(const std::vector<Field>& fields, std::string_view name) {
  return std::ranges::count(fields, name, &Field::name) == 1 ? find_field(fields, name)->value
                                                             : std::string_view{};
}

// RFC 6455 section 4.1; an Upgrade to anything else is dropped. `head.fields` is what will be sent.
bool asks_websocket(std::string_view upgrade, const std::vector<std::string>& options,
                    const RequestHead& head) {
  const auto key = base::from_base64(only(head.fields, "sec-websocket-key"));
  return head.method == "GET" && head.minor == 1 && head.body.framing == Framing::none &&
         std::ranges::find(options, "upgrade") != options.end() &&
         same_text(upgrade, "websocket") && only(head.fields, "sec-websocket-version") == "13" &&
         key && key->size() == 16;
}

// Names of Connection, and what they say about the connection itself.
Parsed<std::vector<std::string>> take_connection(const std::vector<Field>& fields,
                                                 RequestHead& head) {
  std::vector<std::string> options;
  for (const Field& field : fields) {
    if (field.name == "connection" && !tokens(field.value, options)) {
      return reject(400, "connection", "Connection is not a list of names");
    }
  }
  const auto says = [&](std::string_view option) {
    return std::ranges::find(options, option) != options.end();
  };
  head.keep_alive = !says("close") && (head.minor == 1 || says("keep-alive"));
  return options;
}

Parsed<void> check_names(const std::vector<Field>& fields, const Admission& admission) {
  for (const Field& field : fields) {
    if (field.name.find('_') != std::string::npos && is_protected(folded(field.name), admission)) {
      return reject(400, "folded-name", "a field name could be read as another one");
    }
    const bool once =
        field.name == "authorization" || field.name == "content-type" ||
        std::ranges::find(admission.protected_names, field.name) != admission.protected_names.end();
    if (once && std::ranges::count(fields, field.name, &Field::name) > 1) {
      return reject(400, "twice", "a field that may stand once stands twice");
    }
  }
  return {};
}

}  // namespace

Parsed<RequestHead> parse_request(std::string_view text, const Admission& admission,
                                  std::vector<Field>* dropped) {
  const auto parts = split_head(text);
  if (!parts) return reject(400, "head", "the head has no end");
  RequestHead head;
  std::vector<Field> fields;
  std::vector<std::string> options;
  Parsed<void> step = take_request_line(parts->first, admission.leg, head);
  if (step) step = parse_fields(parts->lines, 400, fields);
  if (step) step = check_names(fields, admission);
  if (step) step = take_host(fields, head);
  if (step) step = take_body(fields, admission.strictness, head);
  if (step) step = take_expect(fields, head);
  if (!step) return std::unexpected(std::move(step).error());
  auto connection = take_connection(fields, head);
  if (!connection) return std::unexpected(std::move(connection).error());
  const std::string upgrade(only(fields, "upgrade"));
  for (Field& field : fields) {
    const bool goes_on =
        !stripped(field.name) && std::ranges::find(*connection, field.name) == connection->end();
    if (goes_on) {
      head.fields.push_back(std::move(field));
    } else if (dropped != nullptr && find_field(head.fields, field.name) == nullptr) {
      dropped->push_back(std::move(field));
    }
  }
  head.websocket = asks_websocket(upgrade, *connection, head);
  return head;
}

std::string write_request(const RequestHead& head) {
  std::string out;
  out.reserve(512);
  out += head.method;
  out += ' ';
  out += head.target;
  out += " HTTP/1.1\r\nHost: ";
  out += head.host;
  if (head.port) out += fmt::format(":{}", *head.port);
  out += "\r\n";
  write_fields(head.fields, out);
  if (head.body.framing == Framing::length)
    out += fmt::format("Content-Length: {}\r\n", head.body.length);
  if (head.body.framing == Framing::chunked) out += "Transfer-Encoding: chunked\r\n";
  if (head.expect_continue) out += "Expect: 100-continue\r\n";
  if (head.websocket) out += "Upgrade: websocket\r\n";
  if (head.websocket || !head.keep_alive) {
    out += "Connection: ";
    out += head.websocket ? (head.keep_alive ? "Upgrade" : "Upgrade, close") : "close";
    out += "\r\n";
  }
  out += "\r\n";
  return out;
}

std::string_view path_of(const RequestHead& head) {
  return std::string_view(head.target).substr(0, head.target.find('?'));
}

std::string_view query_of(const RequestHead& head) {
  const auto question = head.target.find('?');
  return question == std::string::npos ? std::string_view{}
                                       : std::string_view(head.target).substr(question + 1);
}

}  // namespace http
