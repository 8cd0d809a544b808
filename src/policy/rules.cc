// The tables [[egress]] and [[deny]], key by key.
#include <fmt/format.h>

#include <algorithm>

#include "policy/path.h"
#include "policy/pattern.h"
#include "policy/reader.h"

namespace policy {
namespace {

using Read = std::function<base::Status(const At&)>;

std::unexpected<base::Error> fault(std::string what, std::string expected) {
  return base::bad_input("", std::move(what), std::move(expected));
}

Read host_pattern_into(std::string& out) {
  return [&out](const At& at) -> base::Status {
    if (at.shaped(R"({"type":"string"})")) return {};
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

}  // namespace

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

namespace {

base::Result<std::string> opened_range(std::string_view text) {
  return text == "host" ? std::string(text) : opened_cidr(text);
}

// Of a [[deny]]. IPv6 forms of IPv4 addresses are never dialled, so that to deny one would say that
// the address in it is denied when it is not.
base::Result<std::string> any_cidr(std::string_view text) {
  const auto cidr = parse_cidr(text);
  if (!cidr) return fault(cidr.error().what, cidr.error().expected);
  const auto mapped = parse_cidr("::ffff:0:0/96");
  if (cidr->bits >= 96 && contains(*mapped, cidr->address)) {
    Address inner;
    std::copy_n(cidr->address.bytes.begin() + 12, 4, inner.bytes.begin());
    return fault("an IPv4 range in its IPv6 form",
                 fmt::format("expected {}/{}", to_string(inner), cidr->bits - 96));
  }
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

bool encoded_slash_of(const Node& table) {
  const Node* node = table.find("encoded_slash");
  return node != nullptr && node->kind == Node::Kind::boolean && node->boolean;
}

Canon path_pattern(bool encoded_slash) {
  return [encoded_slash](std::string_view text) { return canonical_pattern(text, encoded_slash); };
}

// Keys that make the gateway look inside; they need a host.
constexpr std::array<std::string_view, 6> kInspecting = {"methods", "paths",    "encoded_slash",
                                                         "headers", "max_body", "max_requests"};

// Port 80 and the host's own services are spoken to in the clear; raw bytes have no scheme.
base::Status check_tls_only(const At& at, const Egress& rule) {
  if (!rule.tls_only) return {};
  const bool plain =
      rule.host == kHostName || std::ranges::find(rule.ports, 80) != rule.ports.end();
  if (!rule.host.empty() && !plain) return {};
  return at.bad(fmt::format("TLS alone (tls_only, or https://) at {}",
                            rule.host.empty()        ? "a rule without host"
                            : rule.host == kHostName ? rule.host
                                                     : "port 80, which is plain HTTP"),
                "expected a host and ports on which TLS is spoken");
}

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
  return check_tls_only(at, rule);
}

base::Status read_egress_rule(const At& at, std::size_t number, Egress& rule) {
  rule.name = fmt::format("egress-{}", number);
  const bool encoded_slash = encoded_slash_of(at.node);
  TRY(read_table(at,
                 {{"name", string_into(rule.name, check_label)},
                  {"host", host_pattern_into(rule.host)},
                  {"tcp", canon_into(rule.tcp, canonical_tcp)},
                  {"cidr", canon_into(rule.cidr, opened_cidr)},
                  {"preset",
                   [](const At& a) -> base::Status {
                     if (a.shaped(R"({"type":"string"})")) return {};
                     // Where presets are known they have been replaced by now (presets.cc).
                     TRY(want_string(a, "the name of a tool such as \"pip\""));
                     return a.bad("presets are not known here", "expected the rules themselves");
                   }},
                  {"ports", ports_into(rule.ports)},
                  {"addresses", list_into(rule.addresses, "[\"10.2.0.0/16\"]", opened_range)},
                  {"methods", filled_list(rule.methods, "[\"GET\"]", canonical_method)},
                  {"paths", filled_list(rule.paths, "[\"/v1/**\"]", path_pattern(encoded_slash))},
                  {"encoded_slash", boolean_into(rule.encoded_slash)},
                  {"tls_only", boolean_into(rule.tls_only)},
                  {"headers", [&](const At& a) { return read_headers(a, rule.headers); }},
                  {"max_body", size_into(rule.max_body, Unlimited::allowed, Zero::refused)},
                  {"max_requests", count_into(rule.max_requests, kMostCount, Unlimited::allowed)},
                  {"max_up", size_into(rule.max_up, Unlimited::allowed, Zero::refused)},
                  {"max_down", size_into(rule.max_down, Unlimited::allowed, Zero::refused)},
                  {"own", name_into(rule.own, kOwns)}}));
  TRY(want_one(at, {"host", "tcp", "cidr", "preset"}));
  return at.describing() ? base::Status() : check_egress(at, rule);
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

}  // namespace

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

}  // namespace policy
