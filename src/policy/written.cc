// The policy as the tree that its file would have.
#include "policy/tree.h"
#include "policy/values.h"

namespace policy {
namespace {

Node text(std::string_view value) {
  Node node;
  node.kind = Node::Kind::string;
  node.text = value;
  return node;
}

Node number(std::uint64_t value) {
  Node node;
  node.kind = Node::Kind::integer;
  node.integer = static_cast<std::int64_t>(value);
  return node;
}

Node boolean(bool value) {
  Node node;
  node.kind = Node::Kind::boolean;
  node.boolean = value;
  return node;
}

Node list() {
  Node node;
  node.kind = Node::Kind::array;
  return node;
}

Node texts(const std::vector<std::string>& values) {
  Node node = list();
  for (const std::string& value : values) node.items.push_back(text(value));
  return node;
}

Node ports(const std::vector<std::uint16_t>& values) {
  Node node = list();
  for (std::uint16_t value : values) node.items.push_back(number(value));
  return node;
}

void add(Node& table, std::string key, Node value) {
  table.members.push_back({std::move(key), {}, std::move(value)});
}

Node map(const std::map<std::string, std::string>& values) {
  Node node;
  for (const auto& [key, value] : values) add(node, key, text(value));
  return node;
}

Node count(std::uint64_t value) {
  return value == kUnlimited ? text("unlimited") : number(value);
}
Node size(std::uint64_t value) {
  return text(size_text(value));
}
Node duration(std::uint64_t value) {
  return text(duration_text(value));
}

Node cpus(std::uint64_t milli) {
  if (milli % 1000 == 0) return number(milli / 1000);
  Node node;
  node.kind = Node::Kind::real;
  node.real = static_cast<double>(milli) / 1000;
  return node;
}

Node isolation(const Isolation& from) {
  Node node;
  add(node, "tier", text(from.tier ? to_string(*from.tier) : "auto"));
  add(node, "accept", texts(from.accept));
  add(node, "allow_emulation", boolean(from.allow_emulation));
  add(node, "seccomp", text(to_string(from.seccomp)));
  return node;
}

std::string base_text(const Base& base) {
  switch (base.kind) {
    case BaseKind::host:
      return "host";
    case BaseKind::dir:
      return "dir:" + base.name;
    case BaseKind::image:
      return "image:" + base.name;
  }
  return "";
}

Node filesystem(const Filesystem& from) {
  Node node;
  add(node, "base", text(base_text(from.base)));
  add(node, "root", text(name_of(kRoots, from.root)));
  add(node, "read_only", texts(from.read_only));
  Node workdir;
  add(workdir, "mode", text(name_of(kWorkdirs, from.workdir.mode)));
  if (!from.workdir.from.empty()) add(workdir, "from", text(from.workdir.from));
  add(node, "workdir", std::move(workdir));
  add(node, "reserve", boolean(from.reserve));
  add(node, "hide", texts(from.hide));
  add(node, "canaries", texts(from.canaries));
  return node;
}

Node environment(const Environment& from) {
  Node node;
  add(node, "set", map(from.set));
  add(node, "pass", texts(from.pass));
  add(node, "plain", texts(from.plain));
  return node;
}

Node limits(const Limits& from) {
  Node node;
  add(node, "cpus", cpus(from.cpus_milli));
  add(node, "memory", size(from.memory));
  add(node, "swap", size(from.swap));
  add(node, "processes", number(from.processes));
  add(node, "disk", size(from.disk));
  add(node, "inodes", number(from.inodes));
  add(node, "files", number(from.files));
  add(node, "output", size(from.output));
  add(node, "wall", duration(from.wall_ms));
  add(node, "idle", duration(from.idle_ms));
  add(node, "cpu", duration(from.cpu_ms));
  add(node, "io", size(from.io));
  add(node, "not_required", texts(from.not_required));
  return node;
}

Node network(const Network& from) {
  Node node;
  add(node, "default", text(name_of(kNetworkDefaults, from.fallback)));
  add(node, "mode", text(name_of(kNetworkModes, from.mode)));
  add(node, "resolvers", texts(from.resolvers));
  add(node, "ca", texts(from.ca));
  Node proxy;
  add(proxy, "url", text(from.upstream_proxy.url));
  add(proxy, "no_proxy", texts(from.upstream_proxy.no_proxy));
  add(proxy, "auth", map(from.upstream_proxy.auth));
  add(node, "upstream_proxy", std::move(proxy));
  return node;
}

Node alerts(const Alerts& from) {
  Node node;
  add(node, "blocked_range", text(to_string(from.blocked_range)));
  add(node, "new_destination", text(to_string(from.new_destination)));
  add(node, "request_spike", text(to_string(from.request_spike)));
  add(node, "placeholder_misuse", text(to_string(from.placeholder_misuse)));
  add(node, "placeholder_in_body", text(to_string(from.placeholder_in_body)));
  add(node, "canary", text(to_string(from.canary)));
  return node;
}

Node audit(const Audit& from) {
  Node node;
  add(node, "exec", text(name_of(kNeeds, from.exec)));
  add(node, "journal", text(name_of(kNeeds, from.journal)));
  return node;
}

// Keys that make the gateway look inside are only written where the rule does.
void add_inside(Node& node, const Egress& from) {
  if (!from.methods.empty()) add(node, "methods", texts(from.methods));
  if (!from.paths.empty()) add(node, "paths", texts(from.paths));
  add(node, "encoded_slash", boolean(from.encoded_slash));
  Node headers;
  add(headers, "require", map(from.headers.require));
  add(headers, "forbid", texts(from.headers.forbid));
  add(node, "headers", std::move(headers));
  add(node, "max_body", size(from.max_body));
  add(node, "max_requests", count(from.max_requests));
}

Node egress(const Egress& from) {
  Node node;
  add(node, "name", text(from.name));
  if (!from.host.empty()) add(node, "host", text(from.host));
  if (!from.tcp.empty()) add(node, "tcp", text(from.tcp));
  if (!from.cidr.empty()) add(node, "cidr", text(from.cidr));
  if (!from.preset.empty()) add(node, "preset", text(from.preset));
  if (from.tcp.empty()) add(node, "ports", ports(from.ports));
  add(node, "addresses", texts(from.addresses));
  if (from.tls_only) add(node, "tls_only", boolean(true));
  if (from.inspects) add_inside(node, from);
  add(node, "max_up", size(from.max_up));
  add(node, "max_down", size(from.max_down));
  add(node, "own", text(name_of(kOwns, from.own)));
  return node;
}

Node deny(const Deny& from) {
  Node node;
  if (!from.host.empty()) add(node, "host", text(from.host));
  if (!from.cidr.empty()) add(node, "cidr", text(from.cidr));
  if (!from.ports.empty()) add(node, "ports", ports(from.ports));
  if (!from.methods.empty()) add(node, "methods", texts(from.methods));
  if (!from.paths.empty()) add(node, "paths", texts(from.paths));
  return node;
}

Node origin(const Source& from) {
  Node node;
  if (from.kind == SourceKind::env) add(node, "env", text(from.name));
  if (from.kind == SourceKind::file) add(node, "file", text(from.name));
  if (from.kind == SourceKind::systemd) add(node, "systemd", text(from.name));
  if (from.kind == SourceKind::command) add(node, "command", texts(from.command));
  return node;
}

void add_said(Node& node, std::string key, const std::string& value) {
  if (!value.empty()) add(node, std::move(key), text(value));
}

Node oauth2(const Mint& from) {
  Node node;
  add(node, "token_url", text(from.url));
  add(node, "client_id", text(from.client));
  add(node, "grant", text(name_of(kGrants, from.grant)));
  add(node, "auth", text(name_of(kClientAuths, from.auth)));
  add_said(node, "scope", from.scope);
  add_said(node, "audience", from.audience);
  add_said(node, "revoke_url", from.second_url);
  return node;
}

Node jwt_bearer(const Mint& from) {
  Node node;
  add(node, "token_url", text(from.url));
  add(node, "issuer", text(from.client));
  add_said(node, "subject", from.subject);
  add_said(node, "audience", from.audience);
  add_said(node, "scope", from.scope);
  add(node, "algorithm", text(name_of(kJwtAlgorithms, from.algorithm)));
  add_said(node, "key_id", from.key_id);
  return node;
}

Node mint(const Mint& from) {
  Node node;
  switch (from.kind) {
    case MintKind::none:
      break;
    case MintKind::oauth2:
      return oauth2(from);
    case MintKind::jwt_bearer:
      return jwt_bearer(from);
    case MintKind::vault:
      add(node, "url", text(from.url));
      add(node, "read", text(from.read));
      add(node, "field", text(from.field));
      add_said(node, "namespace", from.namespace_name);
      break;
    case MintKind::github_app:
      add(node, "url", text(from.url));
      add(node, "app_id", text(from.client));
      add_said(node, "installation", from.installation);
      if (!from.permissions.empty()) add(node, "permissions", map(from.permissions));
      break;
    case MintKind::aws_sts:
      add(node, "url", text(from.url));
      add(node, "role", text(from.role));
      add(node, "region", text(from.region));
      break;
    case MintKind::gcp:
      add(node, "token_url", text(from.url));
      add(node, "sts_url", text(from.second_url));
      add_said(node, "scope", from.scope);
      break;
  }
  return node;
}

Node source(const Source& from) {
  if (from.mint.kind == MintKind::none) return origin(from);
  Node node = mint(from.mint);
  if (!from.mint.addresses.empty()) add(node, "addresses", texts(from.mint.addresses));
  add(node, "secret", origin(from));
  Node whole;
  add(whole, std::string(name_of(kMints, from.mint.kind)), std::move(node));
  return whole;
}

Node inject(const Inject& from) {
  Node node;
  switch (from.kind) {
    case InjectKind::header:
      add(node, "header", text(from.header));
      break;
    case InjectKind::basic:
      add(node, "basic", text(from.user));
      return node;
    case InjectKind::query:
      add(node, "query", text(from.field));
      break;
    case InjectKind::path:
      add(node, "path", count(from.segment));
      break;
    case InjectKind::body:
      add(node, "body", text(from.field));
      break;
    case InjectKind::mtls:
      add(node, "mtls", boolean(true));
      return node;
    case InjectKind::postgres:
      add(node, "postgres", text(from.user));
      return node;
    case InjectKind::sigv4: {
      Node scope;
      add(scope, "region", text(from.region));
      add(scope, "service", text(from.service));
      add(node, "sigv4", std::move(scope));
      return node;
    }
  }
  add(node, "format", text(from.format));
  return node;
}

Node credential(const Credential& from) {
  Node node;
  add(node, "name", text(from.name));
  add(node, "source", source(from.source));
  add(node, "hosts", texts(from.hosts));
  add(node, "ports", ports(from.ports));
  if (!from.methods.empty()) add(node, "methods", texts(from.methods));
  if (!from.paths.empty()) add(node, "paths", texts(from.paths));
  add(node, "inject", inject(from.inject));
  add(node, "env", map(from.env));
  if (from.lifetime_ms) add(node, "lifetime", duration(*from.lifetime_ms));
  add(node, "uses", count(from.uses));
  add(node, "own", text(name_of(kOwns, from.own)));
  add(node, "require", boolean(from.require));
  return node;
}

template <class T>
Node tables(const std::vector<T>& values, Node (*make)(const T&)) {
  Node node = list();
  for (const T& value : values) node.items.push_back(make(value));
  return node;
}

}  // namespace

Node tree_of(const Policy& policy) {
  Node root;
  add(root, "version", number(1));
  add(root, "task", text(policy.task));
  add(root, "code", text(to_string(policy.code)));
  add(root, "isolation", isolation(policy.isolation));
  add(root, "filesystem", filesystem(policy.filesystem));
  add(root, "environment", environment(policy.environment));
  add(root, "limits", limits(policy.limits));
  add(root, "network", network(policy.network));
  add(root, "alerts", alerts(policy.alerts));
  add(root, "audit", audit(policy.audit));
  add(root, "egress", tables(policy.egress, egress));
  add(root, "deny", tables(policy.deny, deny));
  add(root, "credential", tables(policy.credentials, credential));
  return root;
}

}  // namespace policy
