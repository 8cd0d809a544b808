// The tables [[credential]], key by key.
#include <fmt/format.h>

#include <algorithm>

#include "policy/path.h"
#include "policy/reader.h"

namespace policy {
namespace {

base::Status read_command(const At& at, Source& out) {
  if (at.shaped(R"({"type":"array","minItems":1,"items":{"type":"string"}})")) return {};
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

// A file within one folder.
Fault check_file_name(std::string_view text) {
  const bool plain = !text.empty() && text.size() <= 255 && text != "." && text != ".." &&
                     text.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
  if (plain) return {};
  return {"no name of a credential", "expected a name as in LoadCredential=NAME:PATH"};
}

base::Status later(const At& at) {
  if (at.shaped("false")) return {};
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
                      {"systemd",
                       [&](const At& a) {
                         out.kind = SourceKind::systemd;
                         return string_into(out.name, check_file_name)(a);
                       }},
                      {"oauth2", later},
                      {"jwt_bearer", later},
                      {"vault", later},
                      {"github_app", later},
                      {"aws_sts", later},
                      {"gcp", later}}));
  return want_one(at, {"env", "file", "command", "systemd"});
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
    return base::bad_input("", "a header that frames the message",
                           "expected a header such as \"Authorization\"");
  }
  return name;
}

Fault check_user(std::string_view text) {
  if (is_header_value(text) && !text.contains(':')) return {};
  return {"no user name", "expected a user name without colon"};
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

base::Status read_inject(const At& at, Inject& out) {
  const auto kind = [&out](InjectKind one, const std::function<base::Status(const At&)>& read) {
    return [&out, one, read](const At& a) -> base::Status {
      out.kind = one;
      return read(a);
    };
  };
  constexpr std::uint64_t kMostSegments = 64;
  TRY(read_table(at, {{"header", canon_into(out.header, injected_header)},
                      {"format", string_into(out.format, check_format)},
                      {"basic", kind(InjectKind::basic, string_into(out.user, check_user))},
                      {"query", kind(InjectKind::query, string_into(out.field, check_field))},
                      {"path", kind(InjectKind::path,
                                    count_into(out.segment, kMostSegments, Unlimited::refused))},
                      {"body", kind(InjectKind::body, string_into(out.field, check_field))},
                      {"sigv4", later},
                      {"mtls", [&](const At& a) { return read_mtls(a, out); }},
                      {"postgres", later}}));
  TRY(want_one(at, {"header", "basic", "query", "path", "body", "mtls"}));
  const bool whole = out.kind == InjectKind::basic || out.kind == InjectKind::mtls;
  if (whole && at.node.find("format") != nullptr) {
    return at.bad("format beside what has none", "expected format beside another place");
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
    add_to_shape(at, R"("required":["source","hosts","methods","paths","inject"])");
    return {};
  }
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
  // Nothing inside could carry a placeholder to where the certificate is shown.
  if (out.inject.kind == InjectKind::mtls && (out.require || !out.env.empty())) {
    return at.bad("a client certificate that waits for a placeholder",
                  "expected require = false, and no env");
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
