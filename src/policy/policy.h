// What is wanted: the Policy, its parser, and the one matcher that decides about egress.
//
// Pure: no file is opened and no clock is read here. Every key of the policy file has a field
// below, in the order of the file. `parse.cc` reads TOML and JSON into the same tree, `match.cc`
// decides, `address.cc` judges addresses.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"

namespace policy {

// Limits, budgets and durations that are "unlimited".
inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

enum class Code { tools_only, reviewed, unreviewed, last_ = unreviewed };
enum class Tier { isolate, container, gvisor, microvm, last_ = microvm };
enum class SeccompProfile {
  strict,
  standard,
  debug,
  browser,
  last_ = browser
};  // standard is "default"
enum class RootMode { read_only, scratch, last_ = scratch };
enum class BaseKind { host, dir, image, last_ = image };
enum class WorkdirMode { empty, overlay, copy, last_ = copy };
enum class NetworkDefault { deny, open_public, last_ = open_public };  // open_public is "public"
enum class NetworkMode { enforce, audit, last_ = audit };
enum class Action { note, alert, freeze, revoke, cut_network, kill, last_ = kill };
enum class Need { best, required, last_ = required };
enum class Own { pass, strip, refuse, last_ = refuse };

struct Isolation {
  std::optional<Tier> tier;  // nullopt is "auto"
  std::vector<std::string> accept;
  bool allow_emulation = false;
  SeccompProfile seccomp = SeccompProfile::standard;
  bool operator==(const Isolation&) const = default;
  template <class W>
  void fields(W& w) {
    w(tier, accept, allow_emulation, seccomp);
  }
};

// Credentials that open nothing and that nobody has a use for: whoever shows one has gone through
// the files of the home.
inline constexpr std::array<std::string_view, 4> kCanaries = {"aws", "github", "netrc", "npm"};

struct Base {
  BaseKind kind = BaseKind::host;
  std::string name;  // path or image name
  bool operator==(const Base&) const = default;
  template <class W>
  void fields(W& w) {
    w(kind, name);
  }
};

struct Workdir {
  WorkdirMode mode = WorkdirMode::empty;
  std::string from;
  bool operator==(const Workdir&) const = default;
  template <class W>
  void fields(W& w) {
    w(mode, from);
  }
};

struct Filesystem {
  Base base;
  RootMode root = RootMode::read_only;
  std::vector<std::string> read_only;
  Workdir workdir;
  bool reserve = false;
  std::vector<std::string> hide;
  std::vector<std::string> canaries;  // of kCanaries
  bool operator==(const Filesystem&) const = default;
  template <class W>
  void fields(W& w) {
    w(base, root, read_only, workdir, reserve, hide, canaries);
  }
};

struct Environment {
  std::map<std::string, std::string> set;
  std::vector<std::string> pass;
  std::vector<std::string> plain;
  bool operator==(const Environment&) const = default;
  template <class W>
  void fields(W& w) {
    w(set, pass, plain);
  }
};

// Sizes in bytes, durations in milliseconds; kUnlimited where it was "unlimited".
struct Limits {
  std::uint64_t cpus_milli = 2000;  // thousandths of one processor
  std::uint64_t memory = 2ULL << 30;
  std::uint64_t swap = 0;
  std::uint64_t processes = 1024;
  std::uint64_t disk = 4ULL << 30;
  std::uint64_t inodes = 400000;
  std::uint64_t files = 65536;
  std::uint64_t output = kUnlimited;
  std::uint64_t wall_ms = 3600'000;
  std::uint64_t idle_ms = 1800'000;
  std::uint64_t cpu_ms = kUnlimited;
  std::uint64_t io = kUnlimited;  // bytes a second
  std::vector<std::string> not_required;
  bool operator==(const Limits&) const = default;
  template <class W>
  void fields(W& w) {
    w(cpus_milli, memory, swap, processes, disk, inodes, files, output, wall_ms, idle_ms, cpu_ms,
      io, not_required);
  }
};

struct UpstreamProxy {
  std::string url;
  std::vector<std::string> no_proxy;
  std::map<std::string, std::string> auth;
  bool operator==(const UpstreamProxy&) const = default;
  template <class W>
  void fields(W& w) {
    w(url, no_proxy, auth);
  }
};

struct Network {
  NetworkDefault fallback = NetworkDefault::deny;  // key `default`
  NetworkMode mode = NetworkMode::enforce;
  std::vector<std::string> resolvers;  // IP or IP:port
  std::vector<std::string> ca;         // files
  UpstreamProxy upstream_proxy;
  bool operator==(const Network&) const = default;
  template <class W>
  void fields(W& w) {
    w(fallback, mode, resolvers, ca, upstream_proxy);
  }
};

struct Alerts {
  Action blocked_range = Action::alert;
  Action new_destination = Action::note;
  Action request_spike = Action::alert;
  Action placeholder_misuse = Action::alert;
  Action placeholder_in_body = Action::note;
  Action canary = Action::alert;
  bool operator==(const Alerts&) const = default;
  template <class W>
  void fields(W& w) {
    w(blocked_range, new_destination, request_spike, placeholder_misuse, placeholder_in_body,
      canary);
  }
};

struct Audit {
  Need exec = Need::best;
  Need journal = Need::required;
  bool operator==(const Audit&) const = default;
  template <class W>
  void fields(W& w) {
    w(exec, journal);
  }
};

struct HeaderRules {
  std::map<std::string, std::string> require;  // name (lower case) → exact value
  std::vector<std::string> forbid;             // names, lower case
  bool operator==(const HeaderRules&) const = default;
  template <class W>
  void fields(W& w) {
    w(require, forbid);
  }
};

// Exactly one of host, tcp, cidr, preset is not empty.
struct Egress {
  std::string name;
  std::string host;  // canonical lower-case A-label, perhaps with a leading "*." or "**."
  std::string tcp;   // "host-or-ip:port"
  std::string cidr;
  std::string preset;
  std::vector<std::uint16_t> ports;
  std::vector<std::string> addresses;  // CIDRs, or "host"
  std::vector<std::string> methods;    // empty: no restriction; GET includes HEAD
  std::vector<std::string> paths;
  bool encoded_slash = false;
  bool tls_only = false;  // no plain HTTP on its ports, whatever their number
  HeaderRules headers;
  std::uint64_t max_body = kUnlimited;
  std::uint64_t max_requests = kUnlimited;
  std::uint64_t max_up = kUnlimited;
  std::uint64_t max_down = kUnlimited;
  Own own = Own::pass;
  // Some key that makes the gateway look inside was written (methods … max_requests).
  bool inspects = false;
  bool operator==(const Egress&) const = default;
  template <class W>
  void fields(W& w) {
    w(name, host, tcp, cidr, preset, ports, addresses, methods, paths, encoded_slash, tls_only,
      headers, max_body, max_requests, max_up, max_down, own, inspects);
  }
};

struct Deny {
  std::string host;  // or cidr
  std::string cidr;
  std::vector<std::uint16_t> ports;  // empty: all
  std::vector<std::string> methods;
  std::vector<std::string> paths;
  bool operator==(const Deny&) const = default;
  template <class W>
  void fields(W& w) {
    w(host, cidr, ports, methods, paths);
  }
};

// How the secret that is lent is made out of the one that was read; `none`: it is that one.
enum class MintKind { none, oauth2, jwt_bearer, vault, github_app, aws_sts, gcp, last_ = gcp };
enum class Grant { client_credentials, refresh_token, last_ = refresh_token };
enum class ClientAuth { basic, body, none, last_ = none };  // how an OAuth client shows its secret
enum class JwtAlgorithm { rs256, es256, last_ = es256 };
struct Mint {
  MintKind kind = MintKind::none;
  std::string url;  // https: oauth2, jwt_bearer, gcp: the token endpoint; vault, github_app: the
                    // API's base; aws_sts: the service
  std::string second_url;  // oauth2: revocation (RFC 7009); gcp: the token exchange; "" : none
  std::vector<std::string> addresses;  // non-public ranges that their names may resolve to
  std::string client;  // oauth2: client_id; jwt_bearer: issuer; github_app: the app's id
  std::string subject;
  std::string audience;
  std::string scope;
  std::string key_id;
  Grant grant = Grant::client_credentials;
  ClientAuth auth = ClientAuth::basic;
  JwtAlgorithm algorithm = JwtAlgorithm::rs256;
  std::string read;            // vault: what is read, "secret/data/app"
  std::string field;           // and the member of its data
  std::string namespace_name;  // vault
  std::string installation;    // github_app; "": that of the binding's first repository
  std::map<std::string, std::string> permissions;  // github_app; empty: by methods and paths
  std::string role;                                // aws_sts
  std::string region;                              // aws_sts
  bool operator==(const Mint&) const = default;
  template <class W>
  void fields(W& w) {
    w(kind, url, second_url, addresses, client, subject, audience, scope, key_id, grant, auth,
      algorithm, read, field, namespace_name, installation, permissions, role, region);
  }
};

// Where the long-lived secret is read; `systemd` is a file of $CREDENTIALS_DIRECTORY.
enum class SourceKind { env, file, command, systemd, last_ = systemd };
struct Source {
  SourceKind kind = SourceKind::env;
  std::string name;                  // variable, path, or the credential's name at systemd
  std::vector<std::string> command;  // argv
  Mint mint = {};
  bool operator==(const Source&) const = default;
  template <class W>
  void fields(W& w) {
    w(kind, name, command, mint);
  }
};

// The places that are built.
enum class InjectKind { header, basic, query, path, body, mtls, sigv4, postgres, last_ = postgres };
// The fields of a credential for signatures of AWS.
inline constexpr std::string_view kAccessKey = "access_key_id";
inline constexpr std::string_view kSecretKey = "secret_access_key";
inline constexpr std::string_view kSessionToken = "session_token";
struct Inject {
  InjectKind kind = InjectKind::header;
  std::string header = "authorization";  // lower case
  std::string format = "{secret}";       // text around {secret}: all but basic and mtls
  std::string user;                      // basic, postgres
  std::string field;                     // query: the parameter; body: of a form or a JSON object
  std::uint64_t segment = 0;             // path: from 1
  std::string region;                    // sigv4
  std::string service;                   // sigv4
  bool operator==(const Inject&) const = default;
  template <class W>
  void fields(W& w) {
    w(kind, header, format, user, field, segment, region, service);
  }
};

struct Credential {
  std::string name;
  Source source;
  std::vector<std::string> hosts;
  std::vector<std::uint16_t> ports;
  std::vector<std::string> methods;
  std::vector<std::string> paths;
  Inject inject;
  std::map<std::string, std::string> env;    // variable inside → field of the secret ("secret")
  std::optional<std::uint64_t> lifetime_ms;  // nullopt: the run's
  std::uint64_t uses = kUnlimited;
  Own own = Own::refuse;
  bool require = true;
  bool operator==(const Credential&) const = default;
  template <class W>
  void fields(W& w) {
    w(name, source, hosts, ports, methods, paths, inject, env, lifetime_ms, uses, own, require);
  }
};

struct Policy {
  std::uint64_t revision = 1;  // 1, 2, … with each change in a running sandbox; no key has it
  std::string task = "default";
  Code code = Code::unreviewed;
  Isolation isolation;
  Filesystem filesystem;
  Environment environment;
  Limits limits;
  Network network;
  Alerts alerts;
  Audit audit;
  std::vector<Egress> egress;
  std::vector<Deny> deny;
  std::vector<Credential> credentials;
  bool operator==(const Policy&) const = default;
  template <class W>
  void fields(W& w) {
    w(revision, task, code, isolation, filesystem, environment, limits, network, alerts, audit,
      egress, deny, credentials);
  }
};

// --- Parsing -------------------------------------------------------------------------------

// The keys in which two policies differ, in the order of the file: "limits.wall", "egress". Tables
// of [[egress]], [[deny]] and [[credential]] count as one value each, `revision` not at all.
[[nodiscard]] std::vector<std::string> differences(const Policy& one, const Policy& other);

// What the host can give, where a default depends on it ("or half the host's, if less").
struct HostSize {
  std::uint64_t cpus_milli = 0;
  std::uint64_t memory = 0;
};

// A change from the command line, carried out after the file, in order.
enum class OverrideKind { set, allow, env, timeout };
struct Override {
  OverrideKind kind = OverrideKind::set;
  std::string text;  // as given: "limits.wall=1s", "api.test:443", "K=V" or "NAME", "90s"
};

// A policy with where each value came from: key path ("limits.wall", "egress[0].ports") →
// "default", "FILE:LINE:COLUMN", "--set", "--allow" …
struct Effective {
  Policy policy;
  std::map<std::string, std::string> origins;
  std::vector<std::string> warnings;  // e.g. a wildcard under a private public suffix
};

// The defaults of the contract, cut to the host's size.
[[nodiscard]] Policy defaults(const HostSize& host);

// Parses a whole policy. `text` may be empty (the defaults); `file` is the name for messages;
// JSON when the first character that is not white space is `{`, else TOML. Strict: unknown,
// duplicate, wrongly typed and contradictory keys are bad_input with FILE:LINE:COLUMN, what was
// found, what would be right and the closest known key; keys that the contract knows but that are
// not built are `unsupported`. Checks what can be judged without the host: rule conflicts, public
// suffixes, bindings that lie outside the egress rules, credential-looking environment values.
[[nodiscard]] base::Result<Effective> parse(std::string_view text, std::string_view file,
                                            std::span<const Override> overrides,
                                            const HostSize& host);

// The effective policy as TOML, each value followed by its origin as a comment; parse() of it
// gives the same Policy.
[[nodiscard]] std::string show(const Effective& effective);
// The same as one JSON object (for --json, and for run.planned); keys in the order of the file.
[[nodiscard]] std::string to_json(const Policy& policy);

// Why a value of the environment looks like a credential ("starts with ghp_", …); "" when it does
// not. The parser asks for environment.set; whoever reads the caller's environment asks for
// environment.pass, unless the name is in environment.plain.
[[nodiscard]] std::string credential_like(std::string_view name, std::string_view value);
// A command line for a record that others read: what looks like a credential in it, by itself,
// after
// `--token`, `NAME_TOKEN=` and the like or as the password of a URL, is "[redacted]".
[[nodiscard]] std::vector<std::string> without_credentials(std::vector<std::string> argv);

[[nodiscard]] std::string_view to_string(Tier tier);
[[nodiscard]] std::string_view to_string(Code code);
[[nodiscard]] std::string_view to_string(Action action);
[[nodiscard]] std::string_view to_string(SeccompProfile profile);
[[nodiscard]] std::string_view to_string(MintKind kind);    // "none", "oauth2", …
[[nodiscard]] std::string size_text(std::uint64_t bytes);   // "512MiB", "unlimited"
[[nodiscard]] std::string duration_text(std::uint64_t ms);  // "90s", "1h", "unlimited"

// --- Hosts, addresses ----------------------------------------------------------------------

// The one canonical form of a host, computed once and used for policy, certificate, SNI, Host and
// dial: lower case, one trailing dot removed, labels of [a-z0-9_-], at most 253 bytes. bad_input
// for anything two parsers could read differently: empty labels, NUL, non-ASCII, percent signs, a
// last label that is all digits or 0x… and not a strict dotted quad, brackets around a name.
// An IP literal comes back as its canonical text with `is_address` set.
struct Host {
  std::string name;
  bool is_address = false;
  bool operator==(const Host&) const = default;
};
[[nodiscard]] base::Result<Host> canonical_host(std::string_view text);

// An IPv4 or IPv6 address in network byte order; IPv4 fills the first four bytes.
struct Address {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes{};
  bool operator==(const Address&) const = default;
  auto operator<=>(const Address&) const = default;
  template <class W>
  void fields(W& w) {
    w(v6);
    for (auto& byte : bytes) w(byte);
  }
};
[[nodiscard]] base::Result<Address> parse_address(
    std::string_view text);  // strict: inet_pton's forms
[[nodiscard]] std::string to_string(const Address& address);

struct Cidr {
  Address address;
  unsigned bits = 0;
  bool operator==(const Cidr&) const = default;
};
[[nodiscard]] base::Result<Cidr> parse_cidr(std::string_view text);
[[nodiscard]] bool contains(const Cidr& cidr, const Address& address);
[[nodiscard]] std::string to_string(const Cidr& cidr);

// What the address guard thinks of an address by itself (reference: RFC 6890 and the special
// purpose registries). `never`: no rule opens it. `private_range`: a cidr rule, or a rule's
// `addresses`, may. `open`: public. Embedded IPv4 (mapped, compatible, SIIT, NAT64, 6to4, Teredo,
// ISATAP) is judged.
enum class Guard { open, private_range, never };
struct Judgement {
  Guard guard = Guard::never;
  std::string
      reason;  // "metadata", "loopback", "private", "link-local", "nat64", …; empty when open
};
[[nodiscard]] Judgement judge(const Address& address);

// Names that are never resolved, whatever the rules: metadata names, single labels, localhost,
// *.internal, *.local … The empty string when the name may be looked at; else the reason.
// `host.cerco.internal` is the one exception.
[[nodiscard]] std::string blocked_name(std::string_view host);
inline constexpr std::string_view kHostName = "host.cerco.internal";

// --- Deciding ------------------------------------------------------------------------------

enum class Scheme { tcp, tls, http };  // how the bytes look: raw, TLS, plain HTTP

// A question to the matcher. For a tunnel, method and path are empty.
struct Request {
  Scheme scheme = Scheme::tls;
  Host host;
  std::uint16_t port = 443;
  std::string method;
  std::string path;  // canonical_path() of the target, without the query
  std::vector<std::pair<std::string, std::string>> headers;  // names lower case
  // Those that the client sent and that the gateway does not send on.
  std::vector<std::pair<std::string, std::string>> dropped{};
};

enum class Treatment {
  refuse,   // no
  tunnel,   // relay the bytes; of TLS only the ClientHello is read
  inspect,  // parse HTTP: plain on Scheme::http, terminated on Scheme::tls
};

// The rule of a Verdict that network.default = "public" allows.
inline constexpr std::string_view kPublicRule = "network.default";
inline constexpr std::size_t kNoRule = std::numeric_limits<std::size_t>::max();

struct Verdict {
  bool allow = false;
  // Allowed by network.mode = "audit" alone: `reason` and `fix` are those of the refusal that
  // enforce would give. The journal's verdict is then "audit".
  bool audit = false;
  Treatment treatment = Treatment::refuse;
  std::string rule;  // name of the egress rule that decided, or kPublicRule; "" when none
  std::size_t rule_index = kNoRule;  // into policy.egress; see rule_of()
  std::uint64_t revision = 0;        // of the policy that decided; 0: none was asked
  // "host", "port", "method", "path", "header", "range", "deny-rule", "blocked-name", "protocol";
  // "" when allowed
  std::string reason;
  std::string fix;  // the narrowest [[egress]] that would allow it, as TOML; "" when nothing may
};
// The egress rule whose limits hold for what was allowed, nullptr when there is none. Under audit
// mode that is the nearest rule of the host.
[[nodiscard]] const Egress* rule_of(const Policy& policy, const Verdict& verdict);

// Whether destinations that no rule names can be allowed: everything public is open, or audit mode
// is on.
[[nodiscard]] bool reaches_beyond_rules(const Policy& policy);

// One rule as the shortest TOML that says it: its place, methods and paths; limits are left out.
[[nodiscard]] std::string rule_text(const Egress& rule);

// The path of a request target in its one canonical form, or bad_input where two parsers could
// read it differently: "//", "/./", "/../", encoded dots, %00, %zz, raw non-ASCII, a backslash, and
// %2F unless `encoded_slash`. The query is cut off.
[[nodiscard]] base::Result<std::string> canonical_path(std::string_view target, bool encoded_slash);

// What the policy says before anything is known but host and port: whether such a connection can be
// allowed at all, and how it is to be treated.
[[nodiscard]] Verdict decide_connection(const Policy& policy, const Request& request);
// What it says of one HTTP request on an inspected connection.
[[nodiscard]] Verdict decide_request(const Policy& policy, const Request& request);

// The parts of a URL of a mint, which the parser has checked: https, a name, a port, a path.
struct Endpoint {
  std::string host;  // canonical
  std::uint16_t port = 443;
  std::string path;  // "/" at least
  bool operator==(const Endpoint&) const = default;
};
[[nodiscard]] base::Result<Endpoint> endpoint_of(std::string_view url);
// Every endpoint that minting this policy's credentials dials, as rules of a host and a port with
// the mint's `addresses`; empty where nothing is minted.
[[nodiscard]] std::vector<Egress> mint_rules(const Policy& policy);
// Whether the secret that is read may have more than one line: keys and objects.
[[nodiscard]] bool takes_lines(const Credential& credential);

// What a minted key may do is derived from its binding. Errors (bad_input): the binding is wider
// than what can be said there.
struct GithubGrant {
  std::string owner;
  std::vector<std::string> repositories;
  std::map<std::string, std::string> permissions;
};
[[nodiscard]] base::Result<GithubGrant> github_grant(const Credential& credential);
// The session policy of AssumeRole, and the credential access boundary of Google's token exchange
// ("" where the binding has other hosts than Cloud Storage's and `scope` says all), as JSON.
[[nodiscard]] base::Result<std::string> aws_session_policy(const Credential& credential);
[[nodiscard]] base::Result<std::string> gcp_boundary(const Credential& credential);

// Whether a credential's binding covers the request's host, port, method and path.
[[nodiscard]] bool covers(const Credential& credential, const Request& request);

// Whether gateway termination is needed for that host and port: a rule that looks inside, or a
// credential.
[[nodiscard]] bool needs_inspection(const Policy& policy, std::string_view host,
                                    std::uint16_t port);

// How much of what goes to the names of a rule's host pattern at a port is looked into request by
// request, whatever its bytes look like: `some` where that holds for some names below the pattern.
// What is not looked into may be a tunnel.
enum class Looked { none, some, all };
[[nodiscard]] Looked looked_into(const Policy& policy, const Egress& rule, std::uint16_t port);

// Whether some TLS connection that the policy allows is to be terminated: needs_inspection() of
// some rule's host (or of a name below it that a [[deny]] or a [[credential]] has) and port.
[[nodiscard]] bool terminates(const Policy& policy);

// Whether that exact name could be allowed on some port (for DNS); `audited` where audit mode alone
// lets it resolve.
enum class NameRuling { refused, allowed, audited };
[[nodiscard]] NameRuling rule_on_name(const Policy& policy, std::string_view host);
[[nodiscard]] bool name_allowed(const Policy& policy, std::string_view host);

// Whether some rule of that host and port lets an encoded slash stand in a path: what to hand to
// canonical_path() for it. decide_request() then asks the rule that decides.
[[nodiscard]] bool encoded_slash_allowed(const Policy& policy, std::string_view host,
                                         std::uint16_t port);

// Whether a [[deny]] with a cidr holds that address; to be asked of every address before it is
// dialled.
[[nodiscard]] bool address_denied(const Policy& policy, const Address& address, std::uint16_t port);

// Whether an address that judge() does not call open, or that lies in an attached subnet, is opened
// for this rule: by the rule's own literal or cidr, or by the `addresses` of the rules with its
// host (loopback by "host", or for kHostName). What the guard never opens stays shut.
[[nodiscard]] bool range_opened(const Policy& policy, const Egress& rule, const Address& address);

}  // namespace policy
