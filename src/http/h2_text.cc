// Heads of HTTP/2 as text (RFC 9113 sections 8.2 and 8.3), and back.
#include "http/h2_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "http/syntax.h"

namespace http {

namespace {

constexpr std::string_view kScheme = "https";
// Of the connection: HTTP/2 has its own words for them, or none.
constexpr std::array<std::string_view, 6> kOfConnection = {
    "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host"};

std::string_view value_of(const std::vector<Field>& fields, std::string_view name) {
  const Field* found = find_field(fields, name);
  return found == nullptr ? std::string_view{} : std::string_view(found->value);
}

bool has(const std::vector<Field>& fields, std::string_view name) {
  return find_field(fields, name) != nullptr;
}

void add_line(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  text += value;
  text += "\r\n";
}

std::string target_of(const std::vector<Field>& fields) {
  const std::string_view authority = value_of(fields, ":authority");
  const std::string_view scheme = value_of(fields, ":scheme");
  if (value_of(fields, ":method") == "CONNECT") return std::string(authority);
  const std::string_view path = value_of(fields, ":path");
  if (scheme == kScheme) return std::string(path);
  return fmt::format("{}://{}{}", scheme, authority, path);
}

void add_hosts(std::string& text, const std::vector<Field>& fields) {
  const std::string_view authority = value_of(fields, ":authority");
  if (!authority.empty()) add_line(text, "host", authority);
  for (const Field& field : fields) {
    if (field.name == "host" && field.value != authority) add_line(text, "host", field.value);
  }
}

// A client may cut its Cookie into crumbs (RFC 9113 section 8.2.3).
void add_others(std::string& text, const std::vector<Field>& fields) {
  std::string cookies;
  for (const Field& field : fields) {
    if (field.name.starts_with(':') || field.name == "host") continue;
    if (field.name != "cookie") {
      add_line(text, field.name, field.value);
      continue;
    }
    if (!cookies.empty()) cookies += "; ";
    cookies += field.value;
  }
  if (!cookies.empty()) add_line(text, "cookie", cookies);
}

struct Taken {
  std::string_view first;
  std::vector<Field> fields;
};

Parsed<Taken> take(std::string_view head) {
  const auto parts = split_head(head);
  if (!parts) return reject(500, "h2-head", "a head of ours has no end");
  Taken taken{.first = parts->first};
  if (auto parsed = parse_fields(parts->lines, 500, taken.fields); !parsed) {
    return std::unexpected(std::move(parsed).error());
  }
  return taken;
}

Body framing_of(const std::vector<Field>& fields, Framing otherwise) {
  if (has(fields, "transfer-encoding")) return {.framing = Framing::chunked};
  const Field* length = find_field(fields, "content-length");
  if (length == nullptr) return {.framing = otherwise};
  const std::uint64_t bytes = parse_length(length->value).value_or(0);
  if (bytes == 0) return {};
  return {.framing = Framing::length, .length = bytes};
}

void move_others(std::vector<Field>& from, H2Head& head) {
  for (Field& field : from) {
    if (std::ranges::find(kOfConnection, field.name) != kOfConnection.end()) continue;
    head.fields.push_back({std::move(field.name), std::move(field.value), {}});
  }
}

}  // namespace

bool h2_field_holds(std::string_view name, std::string_view value) {
  const auto breaks = [](char c) { return c == '\r' || c == '\n' || c == '\0'; };
  const auto blank = [&](char c) { return breaks(c) || c == ' ' || c == '\t'; };
  if (name.empty() || std::ranges::any_of(name, blank)) return false;
  return name.starts_with(':') ? std::ranges::none_of(value, blank)
                               : std::ranges::none_of(value, breaks);
}

std::string h2_request_text(const std::vector<Field>& fields, H2Ends ends) {
  const std::string_view method = value_of(fields, ":method");
  std::string text = fmt::format("{} {} HTTP/1.1\r\n", method, target_of(fields));
  add_hosts(text, fields);
  add_others(text, fields);
  if (!has(fields, "content-length")) {
    const bool wants_length = method == "POST" || method == "PUT" || method == "PATCH";
    if (ends == H2Ends::later) add_line(text, "transfer-encoding", "chunked");
    if (ends == H2Ends::here && wants_length) add_line(text, "content-length", "0");
  }
  text += "\r\n";
  return text;
}

std::string h2_response_text(const std::vector<Field>& fields, std::string_view request_method,
                             H2Ends ends) {
  const std::string_view status = value_of(fields, ":status");
  std::string text = fmt::format("HTTP/1.1 {} \r\n", status);
  add_others(text, fields);
  const bool bodiless =
      request_method == "HEAD" || status.starts_with('1') || status == "204" || status == "304";
  if (!bodiless && !has(fields, "content-length")) {
    if (ends == H2Ends::later) add_line(text, "transfer-encoding", "chunked");
    if (ends == H2Ends::here) add_line(text, "content-length", "0");
  }
  text += "\r\n";
  return text;
}

Parsed<H2Head> h2_request_fields(std::string_view text) {
  auto taken = take(text);
  if (!taken) return std::unexpected(std::move(taken).error());
  const auto method_end = taken->first.find(' ');
  const auto target_end = taken->first.rfind(' ');
  if (method_end == std::string_view::npos || target_end == method_end) {
    return reject(500, "h2-head", "a request line of ours is not one");
  }
  H2Head head;
  head.fields = {
      {":method", std::string(taken->first.substr(0, method_end)), {}},
      {":scheme", std::string(kScheme), {}},
      {":authority", std::string(value_of(taken->fields, "host")), {}},
      {":path", std::string(taken->first.substr(method_end + 1, target_end - method_end - 1)), {}}};
  head.body = framing_of(taken->fields, Framing::none);
  move_others(taken->fields, head);
  head.fields.push_back({"te", "trailers", {}});
  return head;
}

Parsed<H2Head> h2_response_fields(std::string_view text, std::string_view request_method) {
  auto taken = take(text);
  if (!taken) return std::unexpected(std::move(taken).error());
  const std::string status(taken->first.substr(std::min<std::size_t>(9, taken->first.size()), 3));
  const auto number = base::parse_number(status);
  if (!number || *number < 100 || *number == 101) {
    return reject(500, "h2-head", "an answer of ours has no status that HTTP/2 knows");
  }
  H2Head head;
  head.fields = {{":status", status, {}}};
  head.interim = *number < 200;
  const bool bodiless =
      request_method == "HEAD" || head.interim || *number == 204 || *number == 304;
  if (!bodiless) head.body = framing_of(taken->fields, Framing::until_close);
  move_others(taken->fields, head);
  return head;
}

}  // namespace http
