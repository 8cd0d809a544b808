// Byte classes, field lines, and where a head ends.
#include "http/field.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "http/syntax.h"

namespace http {

namespace {

constexpr std::array<std::uint8_t, 256> classes() {
  std::array<std::uint8_t, 256> table{};
  const auto mark = [&table](std::string_view bytes, std::uint8_t bits) {
    for (char c : bytes) {
      auto& entry = table[static_cast<unsigned char>(c)];
      entry = static_cast<std::uint8_t>(entry | bits);
    }
  };
  constexpr std::string_view kAlnum =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  mark(kAlnum, kToken | kPath | kQuery | kHostByte);
  mark("!#$%&'*+-.^_`|~", kToken);
  mark("-._~!$&'()*+,;=:@/%^`{|}[]", kPath | kQuery);
  mark("?\"<>", kQuery);
  mark("-._", kHostByte);
  mark("0123456789abcdefABCDEF", kHexDigit);
  for (unsigned c = 0x20; c < 256; ++c) {
    if (c != 0x7f) table[c] = static_cast<std::uint8_t>(table[c] | kValue);
  }
  table['\t'] = kValue;
  return table;
}

constexpr std::array kDnsTypes = {"application/dns-message", "application/dns-json",
                                  "application/oblivious-dns-message"};

}  // namespace

constexpr std::array<std::uint8_t, 256> kClass = classes();

bool all(std::string_view text, std::uint8_t bits) {
  return std::ranges::all_of(text, [bits](char c) { return is(c, bits); });
}

bool carries_dns(const std::vector<Field>& fields) {
  return std::ranges::any_of(fields, [](const Field& field) {
    if (field.name != "content-type" && field.name != "accept") return false;
    const std::string value = base::to_lower(field.value);
    return std::ranges::any_of(kDnsTypes, [&](const char* type) { return value.contains(type); });
  });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool tokens(std::string_view list, std::vector<std::string>& out) {
  for (std::string_view part : base::split(list, ',')) {
    part = trim(part);
    if (part.empty()) continue;
    if (!all(part, kToken)) return false;
    out.push_back(base::to_lower(part));
  }
  return true;
}

bool same_text(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::unexpected<Rejection> reject(unsigned status, std::string_view reason, std::string_view text) {
  return std::unexpected(Rejection{status, std::string(reason), std::string(text)});
}

std::optional<HeadText> split_head(std::string_view head) {
  const auto end = head.find("\r\n");
  if (end == std::string_view::npos || !head.ends_with("\r\n\r\n")) return std::nullopt;
  return HeadText{head.substr(0, end), head.substr(end + 2, head.size() - end - 4)};
}

std::optional<std::uint64_t> parse_length(std::string_view text) {
  const auto length = base::parse_number(text);
  if (!length || *length >= (1ULL << 62)) return std::nullopt;
  return length;
}

Parsed<void> parse_fields(std::string_view lines, unsigned status, std::vector<Field>& fields) {
  while (!lines.empty()) {
    const auto end = lines.find("\r\n");
    if (end == std::string_view::npos)
      return reject(status, "field-line", "a field line has no end");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    if (fields.size() == kMaxFields) return reject(431, "fields", "more than 200 header fields");
    if (line.starts_with(' ') || line.starts_with('\t')) {
      return reject(status, "folded-line", "a field is continued on a second line");
    }
    const auto colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == std::string_view::npos || name.empty() || !all(name, kToken)) {
      return reject(status, "field-name", "a field name is empty or not a token");
    }
    const std::string_view value = trim(line.substr(colon + 1));
    if (!all(value, kValue))
      return reject(status, "field-value", "a field value has a control character");
    fields.push_back({base::to_lower(name), std::string(value), std::string(name)});
  }
  return {};
}

void write_fields(const std::vector<Field>& fields, std::string& out) {
  for (const Field& field : fields) {
    out += field.spelling.empty() ? field.name : field.spelling;
    out += ": ";
    out += field.value;
    out += "\r\n";
  }
}

const Field* find_field(const std::vector<Field>& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

std::size_t remove_fields(std::vector<Field>& fields, std::string_view name) {
  return std::erase_if(fields, [name](const Field& field) { return field.name == name; });
}

void set_field(std::vector<Field>& fields, std::string_view name, std::string_view value) {
  const auto first = std::ranges::find(fields, name, &Field::name);
  if (first == fields.end()) {
    fields.push_back({std::string(name), std::string(value), {}});
    return;
  }
  first->value = value;
  const auto others = std::remove_if(first + 1, fields.end(),
                                     [name](const Field& field) { return field.name == name; });
  fields.erase(others, fields.end());
}

Parsed<std::size_t> find_head_end(std::string_view bytes, std::size_t seen) {
  constexpr std::size_t kMaxFirstLine = kMaxTarget + 128;
  if (bytes.empty()) return 0;
  if (!is(bytes[0], kToken))
    return reject(400, "not-http", "the first byte is not that of a message");
  if (bytes.size() > kMaxFirstLine &&
      bytes.substr(0, kMaxFirstLine).find('\n') == std::string_view::npos) {
    return reject(414, "target-length", "the request target is longer than 16 KiB");
  }
  for (auto at = bytes.find('\n', seen); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    if (at >= kMaxHead) break;
    if (bytes[at - 1] != '\r') return reject(400, "bare-lf", "a line ends in LF without CR");
    if (at >= 3 && bytes[at - 2] == '\n') return at + 1;
  }
  if (bytes.size() >= kMaxHead) return reject(431, "head-length", "the head is longer than 64 KiB");
  return 0;
}

}  // namespace http
