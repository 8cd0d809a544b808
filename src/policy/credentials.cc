// The tables [[credential]], key by key.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "policy/path.h"
#include "policy/reader.h"

namespace policy {
namespace {

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
    return base::bad_input("", "a header that frames the message",
                           "expected a header such as \"Authorization\"");
  }
  return name;
}

Fault check_user(std::string_view text) {
  if (is_header_value(text) && !text.contains(':')) return {};
  return {"no user name", "expected a user name without colon"};
}

Fault check_role(std::string_view text) {
  constexpr std::size_t kMostRole = 63;  // NAMEDATALEN
  if (!text.empty() && text.size() <= kMostRole && is_header_value(text)) return {};
  return {"no user of PostgreSQL", "expected the name of one user such as \"app\""};
}

Fault check_field(std::string_view text) {
  if (!text.empty() && text.size() <= 128 && is_header_value(text)) return {};
  return {"no name of a field", "expected the name of one field such as \"api_key\""};
}

base::Status read_mtls(const At& at, Inject& out) {
  if (at.shaped(R"({"const":true})")) return {};
  bool wanted = false;
  TRY(boolean_into(wanted)(at));
  out.kind = InjectKind::mtls;
  return wanted ? base::Status() : at.bad("false", "expected true, or another place");
}

base::Status read_sigv4(const At& at, Inject& out) {
  TRY(read_table(at, {{"region", string_into(out.region, check_region)},
                      {"service", string_into(out.service, check_region)}}));
  if (at.describing()) {
    add_to_shape(at, R"("required":["region","service"])");
    return {};
  }
  for (std::string_view key : {"region", "service"}) {
    if (at.node.find(key) == nullptr) {
      return at.bad(fmt::format("no {}", key), fmt::format("expected the key {}", key));
    }
  }
  out.kind = InjectKind::sigv4;
  return {};
}

base::Status read_inject(const At& at, Inject& out) {
  const auto kind = [&out](InjectKind one, const std::function<base::Status(const At&)>& read) {
    return [&out, one, read](const At& a) -> base::Status {
      out.kind = one;
      return read(a);
    };
  };
  constexpr std::uint64_t kMostSegments = 64;
  TRY(read_table(
      at,
      {{"header", canon_into(out.header, injected_header)},
       {"format", string_into(out.format, check_format)},
       {"basic", kind(InjectKind::basic, string_into(out.user, check_user))},
       {"query", kind(InjectKind::query, string_into(out.field, check_field))},
       {"path", kind(InjectKind::path, count_into(out.segment, kMostSegments, Unlimited::refused))},
       {"body", kind(InjectKind::body, string_into(out.field, check_field))},
       {"sigv4", [&](const At& a) { return read_sigv4(a, out); }},
       {"mtls", [&](const At& a) { return read_mtls(a, out); }},
       {"postgres", kind(InjectKind::postgres, string_into(out.user, check_role))}}));
  TRY(want_one(at, {"header", "basic", "query", "path", "body", "sigv4", "mtls", "postgres"}));
  const bool whole = out.kind == InjectKind::basic || out.kind == InjectKind::mtls ||
                     out.kind == InjectKind::sigv4 || out.kind == InjectKind::postgres;
  if (whole && at.node.find("format") != nullptr) {
    return at.bad("format beside what has none", "expected format beside another place");
  }
  return {};
}

// Services of AWS whose answers are credentials (N174).
bool hands_out_keys(std::string_view service) {
  static constexpr std::array<std::string_view, 7> kServices = {
      "sts", "iam", "sso", "sso-oauth", "signin", "cognito-identity", "rolesanywhere"};
  return std::ranges::find(kServices, service) != kServices.end();
}

// What a variable can stand for: the one secret, or one of the three values of an account of AWS.
base::Status check_fields(const At& at, const Credential& credential) {
  const bool keys = credential.inject.kind == InjectKind::sigv4;
  for (const auto& [variable, field] : credential.env) {
    const bool known = keys ? field == kAccessKey || field == kSecretKey || field == kSessionToken
                            : field == "secret";
    if (known) continue;
    return base::bad_input(
        at.reading.origins[at.path + ".env." + variable],
        fmt::format("{}.env.{}: found \"{}\"", at.path, variable,
                    base::printable(field.substr(0, 80))),
        keys ? "expected \"access_key_id\", \"secret_access_key\" or \"session_token\""
             : "expected \"secret\", the one field that this source has");
  }
  return {};
}

base::Status read_lifetime(const At& at, std::optional<std::uint64_t>& out) {
  std::uint64_t ms = 0;
  TRY(duration_into(ms, Unlimited::refused)(at));
  out = ms;
  return {};
}

// A session has neither methods nor paths; its hosts and ports are those of raw rules.
base::Status check_postgres(const At& at, const Credential& credential) {
  for (std::string_view key : {"methods", "paths"}) {
    if (at.node.find(key) == nullptr) continue;
    return at.bad(fmt::format("{} of a session with PostgreSQL", key),
                  fmt::format("expected no {}", key));
  }
  if (at.node.find("ports") == nullptr) return at.bad("no ports", "expected the key ports");
  if (std::ranges::any_of(credential.hosts, [](const auto& host) { return host.contains('*'); })) {
    return at.bad("a wildcard", "expected the exact names of the servers in hosts");
  }
  if (credential.own != Own::refuse) {
    return at.bad("a password of the agent's own", "expected own = \"refuse\"");
  }
  if (credential.source.mint.kind != MintKind::none) return at.not_yet("a minted password");
  return {};
}

base::Status read_credential(const At& at, std::size_t number, Credential& out) {
  out.name = fmt::format("credential-{}", number);
  TRY(read_table(
      at,
      {{"name", string_into(out.name, check_label)},
       {"source", [&](const At& a) { return read_source(a, out.source); }},
       {"hosts", filled_list(out.hosts, "[\"api.example.com\"]", canonical_host_pattern)},
       {"ports", ports_into(out.ports)},
       {"methods", filled_list(out.methods, "[\"GET\", \"POST\"]", canonical_method)},
       {"paths", filled_list(out.paths, "[\"/v1/**\"]",
                             [](std::string_view text) { return canonical_pattern(text, true); })},
       {"inject", [&](const At& a) { return read_inject(a, out.inject); }},
       {"env", map_into(out.env, "{ API_KEY = \"secret\" }", check_variable)},
       {"lifetime", [&](const At& a) { return read_lifetime(a, out.lifetime_ms); }},
       {"uses", count_into(out.uses, kMostCount, Unlimited::allowed)},
       {"own", name_into(out.own, kOwns)},
       {"require", boolean_into(out.require)}}));
  if (at.describing()) {
    add_to_shape(at, R"("required":["source","hosts","inject"])");
    return {};
  }
  const bool postgres = out.inject.kind == InjectKind::postgres;
  for (std::string_view key : {"source", "hosts", "methods", "paths", "inject"}) {
    if (postgres && (key == "methods" || key == "paths")) continue;
    if (at.node.find(key) == nullptr) {
      return at.bad(fmt::format("no {}", key), fmt::format("expected the key {}", key));
    }
  }
  if (at.node.find("ports") == nullptr &&
      std::ranges::find(out.hosts, kHostName) != out.hosts.end()) {
    return at.bad("no ports", fmt::format("expected the exact ports of {}", kHostName));
  }
  if (postgres) {
    TRY(check_postgres(at, out));
    return check_fields(at, out);
  }
  if (out.ports.empty()) out.ports = {443};
  // Nothing inside could carry a placeholder to where the certificate is shown.
  if (out.inject.kind == InjectKind::mtls && (out.require || !out.env.empty())) {
    return at.bad("a client certificate that waits for a placeholder",
                  "expected require = false, and no env");
  }
  if (const std::string_view service = out.inject.service; hands_out_keys(service)) {
    return at.bad(fmt::format("{} hands out keys that no binding covers", service),
                  "expected another service");
  }
  if (out.inject.kind == InjectKind::sigv4 && !out.require) {
    return at.bad("a signature without the agent's own",
                  "expected require = true, and env with access_key_id and secret_access_key");
  }
  return check_fields(at, out);
}

}  // namespace

base::Status read_credentials(const At& at, Policy& policy) {
  return read_tables(at, [&](const At& item, std::size_t number) {
    return read_credential(item, number, policy.credentials.emplace_back());
  });
}

}  // namespace policy
