// Single words of a policy: names, variables, hosts, headers, methods, paths of the host.
#include <fmt/format.h>

#include <algorithm>

#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

std::unexpected<base::Error> fault(std::string what, std::string expected) {
  return base::bad_input("", std::move(what), std::move(expected));
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool is_header_value(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

Fault check_label(std::string_view text) {
  const auto first = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good = !text.empty() && text.size() <= 64 && first(text[0]) &&
                    std::ranges::all_of(
                        text, [&](char c) { return first(c) || c == '_' || c == '.' || c == '-'; });
  if (good) return {};
  return {fmt::format("found \"{}\"", base::printable(text.substr(0, 80))),
          "expected a name of at most 64 letters, digits, _, . and -"};
}

Fault check_variable(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const bool good =
      !text.empty() && text.size() <= 256 && letter(text[0]) &&
      std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
  if (good) return {};
  return {"no name of a variable", "expected letters, digits and _ such as LC_ALL"};
}

base::Result<std::string> absolute_path(std::string_view text) {
  if (!text.starts_with('/') || text.contains('\0')) {
    return base::bad_input("", "no absolute path", "expected a path that starts with /");
  }
  return std::string(text);
}

base::Result<std::string> canonical_header(std::string_view text) {
  if (!is_token(text)) return fault("no name of a header", "expected a name such as \"Accept\"");
  return base::to_lower(text);
}

base::Result<std::string> canonical_method(std::string_view text) {
  const bool good = is_token(text) && text.size() <= 32 && std::ranges::all_of(text, [](char c) {
                      return (c >= 'A' && c <= 'Z') || c == '-';
                    });
  if (!good) {
    static constexpr std::array<std::string_view, 7> kCommon = {"GET",   "HEAD",   "POST",   "PUT",
                                                                "PATCH", "DELETE", "OPTIONS"};
    const std::string near = base::closest(base::to_upper(text.substr(0, 32)), kCommon);
    return fault("no method" + (near.empty() ? "" : " (did you mean " + near + ")"),
                 "expected a method in capitals such as \"GET\"");
  }
  if (text == "TRACE" || text == "TRACK" || text == "CONNECT") {
    return fault("a method that is never passed on", "expected another method");
  }
  return std::string(text);
}

base::Result<std::string> canonical_host_pattern(std::string_view text) {
  std::string_view stars;
  for (std::string_view prefix : {"**.", "*."}) {
    if (stars.empty() && text.starts_with(prefix)) stars = prefix;
  }
  if (text == "*" || text == "**") {
    return fault("every name",
                 "expected a name: what no rule allows is denied already, and "
                 "network.default = \"public\" allows every name");
  }
  const std::string_view name = text.substr(stars.size());
  if (name.contains('*')) {
    return fault(
        "a * that is not the first label",
        "expected a name, \"*.example.com\" (one label more) or \"**.example.com\" (one or more)");
  }
  if (std::ranges::any_of(name, [](unsigned char c) { return c >= 0x80; })) {
    return fault("a character that is not ASCII", "expected the name's A-label (xn--…)");
  }
  if (name.contains("://") || name.contains('/'))
    return fault("a URL", "expected the host name alone");
  if (std::ranges::count(name, ':') == 1)
    return fault("a port", "expected the host name alone, and its port in ports");
  const auto host = canonical_host(name);
  if (!host) return fault(host.error().what, host.error().expected);
  if (host->is_address)
    return fault("an IP address", "expected a name; addresses stand in tcp or cidr");
  return std::string(stars) + host->name;
}

}  // namespace policy
