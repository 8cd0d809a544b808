// The one canonical form of a request path: what is matched is what every server reads.
#include <fmt/format.h>

#include "policy/path.h"
#include "policy/policy.h"

namespace policy {
namespace {

constexpr std::size_t kMaxTarget = std::size_t{16} * 1024;

std::unexpected<base::Error> bad_path(std::string what) {
  return base::bad_input("request target", std::move(what), "expected an absolute path");
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_plain(unsigned char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  // RFC 3986 pchar but for `*`, which stands encoded because patterns use it; then three that
  // browsers send as they are.
  return std::string_view("-._~!$&'()+,;=:@[]|").contains(static_cast<char>(c));
}

// Appends one byte of a path in its canonical spelling: plain where it may be, else %XX.
void append(std::string& out, unsigned char byte) {
  if (is_plain(byte)) {
    out.push_back(static_cast<char>(byte));
  } else {
    out += fmt::format("%{:02X}", byte);
  }
}

// A byte that came as %XX.
base::Status append_encoded(std::string& out, unsigned char byte, bool encoded_slash) {
  if (byte < 0x20 || byte == 0x7f) return bad_path("an encoded control character");
  if (byte == '\\') return bad_path("an encoded backslash");
  if (byte == '.') return bad_path("an encoded dot");
  if (byte == '/') {
    if (!encoded_slash) return bad_path("an encoded slash");
    out += "%2F";
    return {};
  }
  append(out, byte);
  return {};
}

base::Result<std::string> spell(std::string_view path, bool encoded_slash, std::string& decoded) {
  std::string out;
  out.reserve(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto byte = static_cast<unsigned char>(path[i]);
    if (byte == '%') {
      const int high = i + 1 < path.size() ? hex_value(path[i + 1]) : -1;
      const int low = i + 2 < path.size() ? hex_value(path[i + 2]) : -1;
      if (high < 0 || low < 0) return bad_path("a percent sign without two digits");
      const auto value = static_cast<unsigned char>(high * 16 + low);
      TRY(append_encoded(out, value, encoded_slash));
      decoded.push_back(static_cast<char>(value));
      i += 2;
      continue;
    }
    if (byte >= 0x80) return bad_path("a byte that is not ASCII");
    if (byte <= 0x20 || byte == 0x7f) return bad_path("a control character or a space");
    if (std::string_view("\\#\"<>`{}").contains(path[i])) {
      return bad_path("a character that must be encoded");
    }
    if (byte == '/') {
      out.push_back('/');
    } else {
      append(out, byte);
    }
    decoded.push_back(static_cast<char>(byte));
  }
  return out;
}

// No segment may be empty (but the last), a dot, or two dots, also not with parameters behind it
// ("..;x", which some servers cut off), whichever slash ends it.
base::Status check_segments(std::string_view decoded) {
  const auto segments = base::split(decoded.substr(1), '/');
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string_view segment = segments[i];
    const std::string_view name = segment.substr(0, segment.find(';'));
    const bool last = i + 1 == segments.size();
    if (name.empty() && !(last && segment.empty())) return bad_path("an empty segment");
    if (name == "." || name == "..") return bad_path("a dot segment");
  }
  return {};
}

// A server that decodes twice would read another path than the one that is judged.
base::Status check_layers(std::string_view decoded) {
  for (auto at = decoded.find('%'); at != std::string_view::npos; at = decoded.find('%', at + 1)) {
    if (decoded.size() - at > 2 && hex_value(decoded[at + 1]) >= 0 &&
        hex_value(decoded[at + 2]) >= 0)
      return bad_path("a character that is encoded twice");
  }
  return {};
}

base::Status check_utf8(std::string_view decoded) {
  while (!decoded.empty()) {
    const std::size_t length = base::utf8_length(decoded);
    if (length == 0) return bad_path("encoded bytes that are no UTF-8");
    decoded.remove_prefix(length);
  }
  return {};
}

}  // namespace

base::Result<std::string> canonical_path(std::string_view target, bool encoded_slash) {
  if (target.size() > kMaxTarget) return bad_path("more than 16 KiB");
  const std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with('/')) return bad_path("no slash at the start");
  std::string decoded;
  std::string out = TRY(spell(path, encoded_slash, decoded));
  TRY(check_segments(decoded));
  TRY(check_layers(decoded));
  TRY(check_utf8(decoded));
  return out;
}

std::string loosest_path(std::string_view path) {
  std::string out;
  bool parameters = false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool slash = path[i] == '/' || path.substr(i, 3) == "%2F";
    if (slash) {
      if (path[i] == '%') i += 2;
      parameters = false;
      out.push_back('/');
      continue;
    }
    if (path[i] == ';') parameters = true;
    if (!parameters) out.push_back(path[i]);
  }
  return out;
}

base::Result<std::string> canonical_pattern(std::string_view pattern, bool encoded_slash) {
  if (!pattern.starts_with('/')) {
    return base::bad_input("", "a path that does not start with /",
                           "expected a path such as \"/v1/**\"");
  }
  if (pattern.contains('?')) {
    return base::bad_input("", "a path with a query",
                           "expected a path without ? and what follows it");
  }
  std::string out;
  const auto segments = base::split(pattern.substr(1), '/');
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool last = i + 1 == segments.size();
    if (segments[i] == "*" || (segments[i] == "**" && last)) {
      out += "/" + std::string(segments[i]);
      continue;
    }
    if (segments[i].contains('*')) {
      return base::bad_input("", "a * within a segment, or a ** before the end",
                             "expected * for one whole segment, or ** for the rest");
    }
    if (segments[i].empty() && last) {
      out += "/";
      continue;
    }
    auto piece = canonical_path("/" + std::string(segments[i]), encoded_slash);
    if (!piece || (segments[i].empty() && !last)) {
      const std::string what = piece ? "an empty segment" : piece.error().what;
      return base::bad_input("", "a path that no request may have: " + what,
                             "expected a path such as \"/v1/**\"");
    }
    out += *piece;
  }
  return out;
}

bool path_matches(std::string_view pattern, std::string_view path) {
  const auto wanted = base::split(pattern.substr(pattern.empty() ? 0 : 1), '/');
  const auto given = base::split(path.substr(path.empty() ? 0 : 1), '/');
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == "**") return i < given.size();
    if (i >= given.size()) return false;
    if (wanted[i] == "*" ? given[i].empty() : wanted[i] != given[i]) return false;
  }
  return wanted.size() == given.size();
}

bool path_contains(std::string_view wide, std::string_view narrow) {
  const auto outer = base::split(wide.substr(1), '/');
  const auto inner = base::split(narrow.substr(1), '/');
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (outer[i] == "**") return i < inner.size();
    if (i >= inner.size() || inner[i] == "**") return false;
    if (outer[i] == "*" ? inner[i].empty() : outer[i] != inner[i]) return false;
  }
  return outer.size() == inner.size();
}

bool paths_intersect(std::string_view a, std::string_view b) {
  const auto left = base::split(a.substr(1), '/');
  const auto right = base::split(b.substr(1), '/');
  for (std::size_t i = 0;; ++i) {
    if (i >= left.size() || i >= right.size()) return left.size() == right.size();
    if (left[i] == "**" || right[i] == "**") return true;
    const bool same = left[i] == "*"    ? !right[i].empty()
                      : right[i] == "*" ? !left[i].empty()
                                        : left[i] == right[i];
    if (!same) return false;
  }
}

}  // namespace policy
