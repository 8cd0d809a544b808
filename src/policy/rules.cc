// The tables [[egress]], [[deny]] and [[credential]], key by key.
#include <fmt/format.h>

#include <algorithm>

#include "policy/path.h"
#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

using Read = std::function<base::Status(const At&)>;

constexpr std::uint64_t kMostRequests = 1ULL << 53;

std::unexpected<base::Error> fault(std::string what, std::string expected) {
  return base::bad_input("", std::move(what), std::move(expected));
}

bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

bool is_header_value(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

// A list that, where it is written, must say something.
Read filled_list(std::vector<std::string>& out, std::string example, Canon canon) {
  return [&out, example,
          read = list_into(out, example, std::move(canon))](const At& at) -> base::Status {
    TRY(read(at));
    if (out.empty())
      return at.bad("an empty list", "expected a list such as " + example + ", or no such key");
    return {};
  };
}

Read host_pattern_into(std::string& out) {
  return [&out](const At& at) -> base::Status {
    const std::string text = TRY(want_string(at, "a host name"));
    auto host = canonical_host_pattern(text);
    if (!host) return at.bad(found(at.node) + ": " + host.error().what, host.error().expected);
    out = std::move(*host);
    return {};
  };
}

// Whether the guard shuts the whole range for one reason.
std::string shut_reason(const Cidr& cidr) {
  Address last = cidr.address;
  for (unsigned bit = cidr.bits; bit < (last.v6 ? 128U : 32U); ++bit) {
    last.bytes[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
  }
  const Judgement from = judge(cidr.address);
  const Judgement to = judge(last);
  return from.guard == Guard::never && from.reason == to.reason ? from.reason : "";
}

base::Result<std::string> opened_cidr(std::string_view text) {
  const auto cidr = parse_cidr(text);
  if (!cidr) return fault(cidr.error().what, cidr.error().expected);
  const std::string why = shut_reason(*cidr);
  if (why == "loopback") {
    return fault("loopback is never opened by address",
                 fmt::format("expected a rule with host = \"{}\" and its ports", kHostName));
  }
  if (!why.empty()) return fault(why + " is never opened", "expected another range");
  return to_string(*cidr);
}

base::Result<std::string> opened_range(std::string_view text) {
  return text == "host" ? std::string(text) : opened_cidr(text);
}

Read canon_into(std::string& out, Canon canon) {
  return [&out, canon = std::move(canon)](const At& at) -> base::Status {
    const std::string text = TRY(want_string(at, "a string"));
    auto cidr = canon(text);
    if (!cidr) return at.bad(found(at.node) + ": " + cidr.error().what, cidr.error().expected);
    out = std::move(*cidr);
    return {};
  };
}

base::Result<std::string> any_cidr(std::string_view text) {
  const auto cidr = parse_cidr(text);
  if (!cidr) return fault(cidr.error().what, cidr.error().expected);
  return to_string(*cidr);
}

base::Result<std::string> canonical_tcp(std::string_view text) {
  const auto colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : base::parse_number(text.substr(colon + 1));
  const std::string expected =
      "expected HOST:PORT such as \"db.example.com:5432\" or \"[2001:db8::1]:22\"";
  if (!port || *port < 1 || *port > 65535) return fault("no port from 1 to 65535", expected);
  const std::string_view place = text.substr(0, colon);
  if (place.contains(':') && !place.starts_with('['))
    return fault("an IPv6 address without brackets", expected);
  const auto host = canonical_host(place);
  if (!host) return fault(host.error().what, expected);
  if (host->is_address) {
    const auto address = parse_address(host->name);
    if (address) TRY(opened_cidr(host->name));
  }
  const bool v6 = host->name.contains(':');
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host->name, v6 ? "]" : "", *port);
}

base::Status read_headers(const At& at, HeaderRules& out) {
  std::map<std::string, std::string> required;
  TRY(read_table(at, {{"require", map_into(required, "{ Accept = \"application/json\" }",
                                           [](std::string_view name) {
                                             return is_token(name)
                                                        ? Fault{}
                                                        : Fault{"no name of a header",
                                                                "expected a name such as Accept"};
                                           })},
                      {"forbid", list_into(out.forbid, "[\"Cookie\"]", canonical_header)}}));
  for (const auto& [name, value] : required) {
    const std::string lower = base::to_lower(name);
    if (!is_header_value(value))
      return at.bad("require." + name + ": a control character", "expected text without it");
    if (!out.require.emplace(lower, value).second)
      return at.bad("require." + name + " stands twice", "expected it once");
    if (std::ranges::find(out.forbid, lower) != out.forbid.end()) {
      return at.bad(name + " is both required and forbidden", "expected one of the two");
    }
  }
  return {};
}

// A budget that the gateway does not count yet.
Read only_unlimited(std::uint64_t& out) {
  return [&out](const At& at) -> base::Status {
    TRY(size_into(out, Unlimited::allowed, Zero::refused)(at));
    if (out != kUnlimited) return at.not_yet("\"" + size_text(out) + "\"");
    return {};
  };
}

bool encoded_slash_of(const Node& table) {
  const Node* node = table.find("encoded_slash");
  return node != nullptr && node->kind == Node::Kind::boolean && node->boolean;
}

Canon path_pattern(bool encoded_slash) {
  return [encoded_slash](std::string_view text) { return canonical_pattern(text, encoded_slash); };
}

// Exactly one of these keys stands in the table.
base::Status want_one(const At& at, const std::vector<std::string_view>& keys) {
  std::vector<std::string_view> given;
  for (std::string_view key : keys) {
    if (at.node.find(key) != nullptr) given.push_back(key);
  }
  if (given.size() == 1) return {};
  return at.bad(given.empty() ? "no target" : fmt::format("both {} and {}", given[0], given[1]),
                one_of(keys));
}

// Keys that make the gateway look inside; they need a host.
constexpr std::array<std::string_view, 6> kInspecting = {"methods", "paths",    "encoded_slash",
                                                         "headers", "max_body", "max_requests"};

base::Status check_egress(const At& at, Egress& rule) {
  for (std::string_view key : kInspecting) {
    const Node* node = at.node.find(key);
    if (node == nullptr) continue;
    rule.inspects = true;
    if (rule.host.empty()) {
      const At there = {at.reading, *node, at.path + "." + std::string(key)};
      return there.bad("a tcp or cidr rule does not look inside",
                       "expected the key in a rule with host");
    }
  }
  if (!rule.tcp.empty() && at.node.find("ports") != nullptr) {
    return at.bad("ports beside tcp", "expected the port in tcp alone");
  }
  if (rule.host == kHostName && at.node.find("ports") == nullptr) {
    return at.bad("no ports", fmt::format("expected the exact ports of {}", kHostName));
  }
  if (rule.host.empty() && rule.own != Own::pass) {
    return at.bad("own beside tcp or cidr", "expected own in a rule with host");
  }
  if (rule.tcp.empty() && rule.ports.empty()) rule.ports = {443};
  return {};
}

base::Status read_egress_rule(const At& at, std::size_t number, Egress& rule) {
  rule.name = fmt::format("egress-{}", number);
  const bool encoded_slash = encoded_slash_of(at.node);
  TRY(read_table(
      at, {{"name", string_into(rule.name, check_label)},
           {"host", host_pattern_into(rule.host)},
           {"tcp", canon_into(rule.tcp, canonical_tcp)},
           {"cidr", canon_into(rule.cidr, opened_cidr)},
           {"preset",
            [](const At& a) -> base::Status {
              const std::string text = TRY(want_string(a, "the name of a tool such as \"pip\""));
              return a.not_yet("\"" + base::printable(text.substr(0, 80)) + "\"");
            }},
           {"ports", ports_into(rule.ports)},
           {"addresses", list_into(rule.addresses, "[\"10.2.0.0/16\"]", opened_range)},
           {"methods", filled_list(rule.methods, "[\"GET\"]", canonical_method)},
           {"paths", filled_list(rule.paths, "[\"/v1/**\"]", path_pattern(encoded_slash))},
           {"encoded_slash", boolean_into(rule.encoded_slash)},
           {"headers", [&](const At& a) { return read_headers(a, rule.headers); }},
           {"max_body", size_into(rule.max_body, Unlimited::allowed, Zero::refused)},
           {"max_requests", count_into(rule.max_requests, kMostRequests, Unlimited::allowed)},
           {"max_up", only_unlimited(rule.max_up)},
           {"max_down", only_unlimited(rule.max_down)},
           {"own", name_into(rule.own, kOwns)}}));
  TRY(want_one(at, {"host", "tcp", "cidr", "preset"}));
  return check_egress(at, rule);
}

base::Status read_deny_rule(const At& at, Deny& rule) {
  TRY(read_table(at,
                 {{"host", host_pattern_into(rule.host)},
                  {"cidr", canon_into(rule.cidr, any_cidr)},
                  {"ports", ports_into(rule.ports)},
                  {"methods", filled_list(rule.methods, "[\"DELETE\"]", canonical_method)},
                  {"paths", filled_list(rule.paths, "[\"/v1/admin/**\"]", path_pattern(true))}}));
  TRY(want_one(at, {"host", "cidr"}));
  if (!rule.cidr.empty() && !(rule.methods.empty() && rule.paths.empty())) {
    return at.bad("methods or paths beside cidr", "expected them in a [[deny]] with host");
  }
  return {};
}

// --- Credentials ---------------------------------------------------------------------------

base::Status read_command(const At& at, Source& out) {
  if (at.node.kind != Node::Kind::array || at.node.items.empty()) {
    return at.wrong("expected a command and its arguments such as [\"gh\", \"auth\", \"token\"]");
  }
  for (std::size_t i = 0; i < at.node.items.size(); ++i) {
    std::string word = TRY(want_string(at.item(i), "a string"));
    if (word.contains('\0') || (i == 0 && word.empty()))
      return at.item(i).bad("no argument", "expected text");
    out.command.push_back(std::move(word));
  }
  out.kind = SourceKind::command;
  return {};
}

base::Status later(const At& at) {
  return at.not_yet("");
}

base::Status read_source(const At& at, Source& out) {
  TRY(read_table(at, {{"env",
                       [&](const At& a) {
                         out.kind = SourceKind::env;
                         return string_into(out.name, check_variable)(a);
                       }},
                      {"file",
                       [&](const At& a) {
                         out.kind = SourceKind::file;
                         return string_into(out.name, [](std::string_view text) {
                           return text.empty() || text.contains('\0')
                                      ? Fault{"no path", "expected the path of a file"}
                                      : Fault{};
                         })(a);
                       }},
                      {"command", [&](const At& a) { return read_command(a, out); }},
                      {"oauth2", later},
                      {"vault", later}}));
  return want_one(at, {"env", "file", "command"});
}

Fault check_format(std::string_view text) {
  const auto at = text.find("{secret}");
  if (at != std::string_view::npos && text.find("{secret}", at + 1) == std::string_view::npos &&
      is_header_value(text)) {
    return {};
  }
  return {fmt::format("found \"{}\"", base::printable(text.substr(0, 80))),
          "expected text with {secret} in it once such as \"Bearer {secret}\""};
}

// Headers that the gateway itself writes or that frame the message.
base::Result<std::string> injected_header(std::string_view text) {
  static constexpr std::array<std::string_view, 12> kTaken = {"host",
                                                              "content-length",
                                                              "transfer-encoding",
                                                              "connection",
                                                              "keep-alive",
                                                              "te",
                                                              "trailer",
                                                              "upgrade",
                                                              "expect",
                                                              "content-encoding",
                                                              "proxy-connection",
                                                              "proxy-authenticate"};
  std::string name = TRY(canonical_header(text));
  if (std::ranges::find(kTaken, name) != kTaken.end()) {
    return fault("a header that frames the message", "expected a header such as \"Authorization\"");
  }
  return name;
}

Fault check_user(std::string_view text) {
  if (is_header_value(text) && !text.contains(':')) return {};
  return {"no user name", "expected a user name without colon"};
}

base::Status read_inject(const At& at, Inject& out) {
  TRY(read_table(at, {{"header", canon_into(out.header, injected_header)},
                      {"format", string_into(out.format, check_format)},
                      {"basic",
                       [&](const At& a) {
                         out.kind = InjectKind::basic;
                         return string_into(out.user, check_user)(a);
                       }},
                      {"query", later},
                      {"path", later},
                      {"body", later},
                      {"sigv4", later},
                      {"mtls", later},
                      {"postgres", later}}));
  TRY(want_one(at, {"header", "basic"}));
  if (out.kind == InjectKind::basic && at.node.find("format") != nullptr) {
    return at.bad("format beside basic", "expected format beside header");
  }
  return {};
}

base::Status check_fields(const At& at, const Credential& credential) {
  for (const auto& [variable, field] : credential.env) {
    if (field == "secret") continue;
    return base::bad_input(at.reading.origins[at.path + ".env." + variable],
                           fmt::format("{}.env.{}: found \"{}\"", at.path, variable,
                                       base::printable(field.substr(0, 80))),
                           "expected \"secret\", the one field that this source has");
  }
  return {};
}

base::Status read_lifetime(const At& at, std::optional<std::uint64_t>& out) {
  std::uint64_t ms = 0;
  TRY(duration_into(ms, Unlimited::refused)(at));
  out = ms;
  return {};
}

base::Status read_credential(const At& at, std::size_t number, Credential& out) {
  out.name = fmt::format("credential-{}", number);
  TRY(read_table(
      at, {{"name", string_into(out.name, check_label)},
           {"source", [&](const At& a) { return read_source(a, out.source); }},
           {"hosts", filled_list(out.hosts, "[\"api.example.com\"]", canonical_host_pattern)},
           {"ports", ports_into(out.ports)},
           {"methods", filled_list(out.methods, "[\"GET\", \"POST\"]", canonical_method)},
           {"paths", filled_list(out.paths, "[\"/v1/**\"]", path_pattern(true))},
           {"inject", [&](const At& a) { return read_inject(a, out.inject); }},
           {"env", map_into(out.env, "{ API_KEY = \"secret\" }", check_variable)},
           {"lifetime", [&](const At& a) { return read_lifetime(a, out.lifetime_ms); }},
           {"uses", count_into(out.uses, kMostRequests, Unlimited::allowed)},
           {"own", name_into(out.own, kOwns)},
           {"require", boolean_into(out.require)}}));
  for (std::string_view key : {"source", "hosts", "methods", "paths", "inject"}) {
    if (at.node.find(key) == nullptr) {
      return at.bad(fmt::format("no {}", key), fmt::format("expected the key {}", key));
    }
  }
  if (at.node.find("ports") == nullptr &&
      std::ranges::find(out.hosts, kHostName) != out.hosts.end()) {
    return at.bad("no ports", fmt::format("expected the exact ports of {}", kHostName));
  }
  if (out.ports.empty()) out.ports = {443};
  return check_fields(at, out);
}

// A list of tables, each read by `read`.
base::Status read_tables(const At& at,
                         const std::function<base::Status(const At&, std::size_t)>& read) {
  const std::string expected = fmt::format("expected tables [[{}]]", at.path);
  if (at.node.kind != Node::Kind::array) return at.wrong(expected);
  for (std::size_t i = 0; i < at.node.items.size(); ++i) {
    const At item = at.item(i);
    if (item.node.kind != Node::Kind::table) return item.wrong(expected);
    at.reading.origins[item.path] = item.where();
    TRY(read(item, i + 1));
  }
  return {};
}

}  // namespace

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
    std::string upper(text.substr(0, 32));
    for (char& c : upper) {
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    const std::string near = base::closest(upper, kCommon);
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

base::Status read_egress(const At& at, Policy& policy) {
  return read_tables(at, [&](const At& item, std::size_t number) {
    return read_egress_rule(item, number, policy.egress.emplace_back());
  });
}

base::Status read_deny(const At& at, Policy& policy) {
  return read_tables(at, [&](const At& item, std::size_t) {
    return read_deny_rule(item, policy.deny.emplace_back());
  });
}

base::Status read_credentials(const At& at, Policy& policy) {
  return read_tables(at, [&](const At& item, std::size_t number) {
    return read_credential(item, number, policy.credentials.emplace_back());
  });
}

}  // namespace policy
