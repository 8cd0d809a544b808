// Where a credential's secret comes from: what is read on this host, and what is minted out of it.
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

Fault check_path(std::string_view text) {
  if (!text.empty() && !text.contains('\0')) return {};
  return {"no path", "expected the path of a file"};
}

// The four places on this host, as fields of a table.
std::vector<Field> origin_fields(Source& out) {
  const auto named = [&out](SourceKind kind, const Check& check) {
    return [&out, kind, check](const At& at) -> base::Status {
      out.kind = kind;
      return string_into(out.name, check)(at);
    };
  };
  return {{"env", named(SourceKind::env, check_variable)},
          {"file", named(SourceKind::file, check_path)},
          {"command", [&out](const At& at) { return read_command(at, out); }},
          {"systemd", named(SourceKind::systemd, check_file_name)}};
}

base::Status read_origin(const At& at, Source& out) {
  TRY(read_table(at, origin_fields(out)));
  return want_one(at, {"env", "file", "command", "systemd"});
}

// --- Values of a mint --------------------------------------------------------------------------

base::Result<std::string> endpoint_url(std::string_view text) {
  const Endpoint endpoint = TRY(endpoint_of(text));
  const std::string port = endpoint.port == 443 ? "" : fmt::format(":{}", endpoint.port);
  return "https://" + endpoint.host + port + endpoint.path;
}

Fault check_words(std::string_view text) {
  if (!text.empty() && text.size() <= 2048 && is_header_value(text)) return {};
  return {"no plain text", "expected one line of text"};
}

// A path below the API of Vault, as `vault read` takes it.
Fault check_read(std::string_view text) {
  const bool good = !text.empty() && text.size() <= 512 && !text.starts_with('/') &&
                    !text.ends_with('/') && canonical_path("/v1/" + std::string(text), false);
  if (good) return {};
  return {"no path of Vault", "expected what is read such as \"secret/data/app\""};
}

Fault check_number(std::string_view text) {
  if (base::parse_number(text)) return {};
  return {"no number", "expected the number as a text such as \"12345\""};
}

Fault check_role(std::string_view text) {
  const bool good = text.starts_with("arn:") && text.contains(":iam::") &&
                    text.contains(":role/") && text.size() <= 2048 && is_header_value(text);
  if (good) return {};
  return {"no role", "expected an ARN such as \"arn:aws:iam::123456789012:role/NAME\""};
}

using Reader = std::function<base::Status(const At&)>;

Reader words_into(std::string& out) {
  return string_into(out, check_words);
}
Reader url_into(std::string& out) {
  return canon_into(out, endpoint_url);
}

// --- Each mint ---------------------------------------------------------------------------------

std::vector<Field> fields_of(Source& source, MintKind kind) {
  Mint& mint = source.mint;
  switch (kind) {
    case MintKind::none:
      return {};
    case MintKind::oauth2:
      return {
          {"token_url", url_into(mint.url)},         {"client_id", words_into(mint.client)},
          {"grant", name_into(mint.grant, kGrants)}, {"auth", name_into(mint.auth, kClientAuths)},
          {"scope", words_into(mint.scope)},         {"audience", words_into(mint.audience)},
          {"revoke_url", url_into(mint.second_url)}};
    case MintKind::jwt_bearer:
      return {{"token_url", url_into(mint.url)},
              {"issuer", words_into(mint.client)},
              {"subject", words_into(mint.subject)},
              {"audience", words_into(mint.audience)},
              {"scope", words_into(mint.scope)},
              {"algorithm", name_into(mint.algorithm, kJwtAlgorithms)},
              {"key_id", words_into(mint.key_id)}};
    case MintKind::vault:
      return {{"url", url_into(mint.url)},
              {"read", string_into(mint.read, check_read)},
              {"field", words_into(mint.field)},
              {"namespace", words_into(mint.namespace_name)}};
    case MintKind::github_app:
      return {{"url", url_into(mint.url)},
              {"app_id", string_into(mint.client, check_number)},
              {"installation", string_into(mint.installation, check_number)},
              {"permissions", map_into(mint.permissions, "{ contents = \"read\" }", check_label)}};
    case MintKind::aws_sts:
      return {{"url", url_into(mint.url)},
              {"role", string_into(mint.role, check_role)},
              {"region", string_into(mint.region, check_region)}};
    case MintKind::gcp:
      return {{"token_url", url_into(mint.url)},
              {"sts_url", url_into(mint.second_url)},
              {"scope", words_into(mint.scope)}};
  }
  return {};
}

std::vector<std::string_view> needs_of(MintKind kind) {
  switch (kind) {
    case MintKind::none:
      return {};
    case MintKind::oauth2:
      return {"secret", "token_url", "client_id"};
    case MintKind::jwt_bearer:
      return {"secret", "token_url", "issuer"};
    case MintKind::vault:
      return {"secret", "url", "read", "field"};
    case MintKind::github_app:
      return {"secret", "app_id"};
    case MintKind::aws_sts:
      return {"secret", "role", "region"};
    case MintKind::gcp:
      return {"secret"};
  }
  return {};
}

// The vendors' own addresses, where none is said.
void fill_in(Mint& mint) {
  const auto fill = [](std::string& url, std::string otherwise) {
    if (url.empty()) url = std::move(otherwise);
  };
  if (mint.kind == MintKind::github_app) fill(mint.url, "https://api.github.com/");
  if (mint.kind == MintKind::aws_sts) {
    fill(mint.url, "https://sts." + mint.region + ".amazonaws.com/");
  }
  if (mint.kind == MintKind::gcp) {
    fill(mint.url, "https://oauth2.googleapis.com/token");
    fill(mint.second_url, "https://sts.googleapis.com/v1/token");
  }
  if (mint.kind == MintKind::jwt_bearer && mint.audience.empty()) mint.audience = mint.url;
}

base::Status check_mint(const At& at, const Mint& mint) {
  if (mint.kind == MintKind::github_app) {
    for (const auto& [permission, level] : mint.permissions) {
      if (level == "read" || level == "write") continue;
      return at.bad(fmt::format("permissions.{}: found \"{}\"", permission,
                                base::printable(level.substr(0, 40))),
                    "expected \"read\" or \"write\"");
    }
  }
  const bool bare = mint.kind == MintKind::oauth2 && mint.auth == ClientAuth::none;
  if (bare && mint.grant == Grant::client_credentials) {
    return at.bad("auth = \"none\" beside client credentials", "expected \"basic\" or \"body\"");
  }
  return {};
}

base::Status read_mint(const At& at, Source& source, MintKind kind) {
  std::vector<Field> fields = fields_of(source, kind);
  fields.push_back(
      {"addresses", list_into(source.mint.addresses, "[\"10.2.0.0/16\"]", opened_cidr)});
  fields.push_back({"secret", [&source](const At& a) { return read_origin(a, source); }});
  TRY(read_table(at, fields));
  std::vector<std::string> quoted;
  for (std::string_view key : needs_of(kind)) {
    quoted.push_back(base::json_string(key));
    if (!at.describing() && at.node.find(key) == nullptr) {
      return at.bad(fmt::format("no {}", key), fmt::format("expected the key {}", key));
    }
  }
  if (at.describing()) {
    add_to_shape(at, R"("required":)" + base::json_array(quoted));
    return {};
  }
  source.mint.kind = kind;
  fill_in(source.mint);
  return check_mint(at, source.mint);
}

}  // namespace

Fault check_region(std::string_view text) {
  const bool good = !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (good) return {};
  return {"no name of that kind", "expected letters, digits and - such as \"eu-central-1\""};
}

base::Status read_source(const At& at, Source& out) {
  std::vector<Field> fields = origin_fields(out);
  std::vector<std::string_view> keys = {"env", "file", "command", "systemd"};
  for (const auto& mint : kMints) {
    const MintKind kind = mint.value;
    fields.push_back({mint.text, [&out, kind](const At& a) { return read_mint(a, out, kind); }});
    keys.push_back(mint.text);
  }
  TRY(read_table(at, fields));
  return want_one(at, keys);
}

base::Result<Endpoint> endpoint_of(std::string_view url) {
  constexpr std::string_view kScheme = "https://";
  const auto wrong = [&](std::string_view what) {
    return base::bad_input("", fmt::format("\"{}\" {}", base::printable(url.substr(0, 80)), what),
                           "expected https://HOST[:PORT]/PATH with a name as HOST");
  };
  if (!url.starts_with(kScheme)) return wrong("does not begin with https://");
  const std::string_view rest = url.substr(kScheme.size());
  const auto slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  const std::string_view path = slash == rest.size() ? "/" : rest.substr(slash);
  Endpoint endpoint;
  if (const auto colon = authority.find(':'); colon != std::string_view::npos) {
    const auto port = base::parse_number(authority.substr(colon + 1));
    if (!port || *port == 0 || *port > 65535) return wrong("has no port that is one");
    endpoint.port = static_cast<std::uint16_t>(*port);
    authority = authority.substr(0, colon);
  }
  const auto host = canonical_host(authority);
  if (!host || host->is_address) return wrong("has no name as its host");
  if (const std::string blocked = blocked_name(host->name); !blocked.empty()) {
    return wrong("is a name that is never resolved");
  }
  endpoint.host = host->name;
  const auto clean = canonical_path(path, false);
  if (!clean || path.contains('?') || path.contains('#')) return wrong("has no plain path");
  endpoint.path = *clean;
  return endpoint;
}

std::vector<Egress> mint_rules(const Policy& policy) {
  std::vector<Egress> rules;
  for (const Credential& credential : policy.credentials) {
    const Mint& mint = credential.source.mint;
    if (mint.kind == MintKind::none) continue;
    for (const std::string& url : {mint.url, mint.second_url}) {
      const auto endpoint = endpoint_of(url);
      if (!endpoint) continue;
      Egress rule;
      rule.name = "mint of " + credential.name;
      rule.host = endpoint->host;
      rule.ports = {endpoint->port};
      rule.addresses = mint.addresses;
      rules.push_back(std::move(rule));
    }
  }
  return rules;
}

bool takes_lines(const Credential& credential) {
  const Mint& mint = credential.source.mint;
  switch (mint.kind) {
    case MintKind::none:
      return credential.inject.kind == InjectKind::mtls ||
             credential.inject.kind == InjectKind::sigv4;
    case MintKind::oauth2:
      return mint.grant == Grant::refresh_token;
    case MintKind::vault:
      return false;
    default:
      return true;
  }
}

}  // namespace policy
