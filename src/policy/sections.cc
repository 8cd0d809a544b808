// The sections of a policy up to [audit], key by key in the order of the file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "policy/reader.h"
#include "policy/upstream_proxy.h"

namespace policy {
namespace {

constexpr std::uint64_t kMostProcesses = 4'194'304;  // PID_MAX_LIMIT of Linux
constexpr std::uint64_t kMostFiles = 1'048'576;      // fs.nr_open's default
constexpr std::uint64_t kMostInodes = 4'294'967'295;

base::Status read_version(const At& at) {
  if (at.shaped(R"({"const":1})")) return {};
  if (at.node.kind != Node::Kind::integer || at.node.integer != 1) return at.wrong("expected 1");
  return {};
}

base::Status read_tier(const At& at, std::optional<Tier>& tier) {
  std::vector<std::string_view> names = {"auto"};
  for (const auto& name : kTiers) names.push_back(name.text);
  std::size_t index = 0;
  TRY(read_name(at, names, std::vector<bool>(names.size(), true), index));
  tier.reset();
  if (index > 0) tier = kTiers[index - 1].value;
  return {};
}

// A risk's name: a word, as the plan says it.
base::Result<std::string> risk(std::string_view text) {
  const bool good = !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!good)
    return base::bad_input("", "no name of a risk", "expected a word such as \"shared-kernel\"");
  return std::string(text);
}

base::Status read_isolation(const At& at, Isolation& out) {
  return read_table(at, {{"tier", [&](const At& a) { return read_tier(a, out.tier); }},
                         {"accept", list_into(out.accept, "[\"shared-kernel\"]", risk)},
                         {"allow_emulation", boolean_into(out.allow_emulation)},
                         {"seccomp", name_into(out.seccomp, kProfiles)}});
}

base::Status read_base(const At& at, Base& out) {
  if (at.shaped(R"({"type":"string","pattern":"^(host|dir:/.+|image:.+)$"})")) return {};
  const std::string expected = "expected host, dir:PATH or image:NAME";
  const std::string text = TRY(want_string(at, "host, dir:PATH or image:NAME"));
  if (text == "host") {
    out = {};
    return {};
  }
  const auto colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if ((kind != "dir" && kind != "image") || rest.empty()) return at.wrong(expected);
  if (kind == "dir" && !rest.starts_with('/'))
    return at.wrong("expected an absolute path after dir:");
  if (kind == "dir") {
    out = {BaseKind::dir, rest};
    while (out.name.size() > 1 && out.name.ends_with('/')) out.name.pop_back();
    return {};
  }
  return at.not_yet("\"" + base::printable(text) + "\"");
}

base::Status read_workdir(const At& at, Workdir& out) {
  bool from_given = false;
  TRY(read_table(
      at, {{"mode", name_into(out.mode, kWorkdirs)}, {"from", [&](const At& a) -> base::Status {
                                                        if (a.shaped(R"({"type":"string"})"))
                                                          return {};
                                                        out.from = TRY(want_string(a, "a folder"));
                                                        from_given = true;
                                                        return {};
                                                      }}}));
  if (from_given && out.mode == WorkdirMode::empty) {
    return at.bad("from without a mode that uses it",
                  "expected mode = \"overlay\" or \"copy\" beside from");
  }
  return {};
}

// A pattern that could never match what it seems to name would hide nothing.
base::Result<std::string> glob(std::string_view text) {
  static constexpr std::size_t kMost = 256;
  static constexpr std::string_view kElsewhere = "[]{}\\";  // meant by other kinds of patterns
  const auto wrong = [](std::string what) {
    return base::bad_input("", std::move(what), "expected a pattern such as \"**/.env\"");
  };
  if (text.empty() || text.size() > kMost) return wrong("no pattern of file names");
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return wrong("a control character");
    if (kElsewhere.contains(c)) {
      return wrong(fmt::format("`{}`, where *, ** and ? are all that a pattern has", c));
    }
  }
  const auto parts = base::split(text.starts_with('/') ? text.substr(1) : text, '/');
  for (const std::string_view part : parts) {
    if (part.empty() || part == "." || part == "..") return wrong("a path that no file has");
  }
  return std::string(text);
}

base::Result<std::string> canary(std::string_view text) {
  if (std::ranges::find(kCanaries, text) != kCanaries.end()) return std::string(text);
  const std::string near = base::closest(text, kCanaries);
  return base::bad_input("", "no canary" + (near.empty() ? "" : " (did you mean " + near + ")"),
                         one_of({kCanaries.begin(), kCanaries.end()}));
}

base::Status read_filesystem(const At& at, Filesystem& out) {
  return read_table(at, {{"base", [&](const At& a) { return read_base(a, out.base); }},
                         {"root", name_into(out.root, kRoots)},
                         {"read_only", list_into(out.read_only, "[\"/srv/data\"]", absolute_path)},
                         {"workdir", [&](const At& a) { return read_workdir(a, out.workdir); }},
                         {"reserve", boolean_into(out.reserve)},
                         {"hide", list_into(out.hide, "[\"**/.env\"]", glob)},
                         {"canaries", list_into(out.canaries, "[\"aws\"]", canary)}});
}

base::Result<std::string> variable(std::string_view text) {
  if (const Fault fault = check_variable(text); !fault.none()) {
    return base::bad_input("", fault.what, fault.expected);
  }
  return std::string(text);
}

// Values are never shown in a message: one of them may be a secret.
base::Status check_environment(const At& at, const Environment& out) {
  const auto where = [&](const std::string& path) { return at.reading.origins[path]; };
  for (const auto& [name, value] : out.set) {
    const std::string path = "environment.set." + name;
    if (value.contains('\0')) {
      return base::bad_input(where(path), path + ": a NUL byte", "expected text without it");
    }
    if (std::ranges::find(out.pass, name) != out.pass.end()) {
      return base::bad_input(where(path), path + ": stands in environment.pass as well",
                             "expected the variable in one of the two");
    }
    if (std::ranges::find(out.plain, name) != out.plain.end()) continue;
    if (const std::string why = credential_like(name, value); !why.empty()) {
      return base::bad_input(
          where(path), fmt::format("{}: looks like a credential: {}", path, why),
          fmt::format("expected a [[credential]] with env = {{ {} = \"secret\" }}, or "
                      "\"{}\" in environment.plain",
                      name, name));
    }
  }
  return {};
}

base::Status read_environment(const At& at, Environment& out) {
  TRY(read_table(at, {{"set", map_into(out.set, "{ K = \"V\" }", check_variable)},
                      {"pass", list_into(out.pass, "[\"LC_ALL\"]", variable)},
                      {"plain", list_into(out.plain, "[\"EXAMPLE_KEY\"]", variable)}}));
  return check_environment(at, out);
}

base::Status read_cpus(const At& at, std::uint64_t& milli) {
  if (at.shaped(R"({"type":"number","minimum":0.01,"maximum":1024})")) return {};
  const std::string expected = "expected a number of processors from 0.01 to 1024 such as 2 or 0.5";
  double cpus = 0;
  if (at.node.kind == Node::Kind::integer) {
    cpus = static_cast<double>(at.node.integer);
  } else if (at.node.kind == Node::Kind::real) {
    cpus = at.node.real;
  } else {
    return at.wrong(expected);
  }
  if (!(cpus >= 0.01 && cpus <= 1024)) {
    return at.bad(at.node.kind == Node::Kind::real ? fmt::format("found {}", cpus) : found(at.node),
                  expected);
  }
  milli = static_cast<std::uint64_t>(std::llround(cpus * 1000));
  return {};
}

base::Result<std::string> releasable(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kLimits = {"memory", "cpus",   "io", "processes",
                                                              "disk",   "inodes", "cpu"};
  if (std::ranges::find(kLimits, text) != kLimits.end()) return std::string(text);
  const std::string near = base::closest(text, kLimits);
  return base::bad_input(
      "", "no limit that may go unheld" + (near.empty() ? "" : " (did you mean " + near + ")"),
      one_of({kLimits.begin(), kLimits.end()}));
}

// Below these no command starts: the sandbox's own init, its descriptors, an empty file system.
constexpr std::uint64_t kLeastMemory = std::uint64_t{4} << 20;
constexpr std::uint64_t kLeastDisk = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastFiles = 16;

using Read = std::function<base::Status(const At&)>;

Read at_least(std::uint64_t least, const std::string& text, const Read& read,
              const std::uint64_t& value) {
  return [least, text, read, &value](const At& at) -> base::Status {
    TRY(read(at));
    if (at.describing()) return {};
    if (value < least) return at.bad(found(at.node), "expected at least " + text);
    return {};
  };
}

base::Status read_limits(const At& at, Limits& out) {
  using enum Unlimited;
  return read_table(
      at, {{"cpus", [&](const At& a) { return read_cpus(a, out.cpus_milli); }},
           {"memory", at_least(kLeastMemory, "4MiB", size_into(out.memory, refused, Zero::refused),
                               out.memory)},
           {"swap", size_into(out.swap, refused, Zero::allowed)},
           {"processes", count_into(out.processes, kMostProcesses, refused)},
           {"disk",
            at_least(kLeastDisk, "1MiB", size_into(out.disk, refused, Zero::refused), out.disk)},
           {"inodes", count_into(out.inodes, kMostInodes, refused)},
           {"files",
            at_least(kLeastFiles, "16", count_into(out.files, kMostFiles, refused), out.files)},
           {"output", size_into(out.output, allowed, Zero::refused)},
           {"wall", duration_into(out.wall_ms, allowed)},
           {"idle", duration_into(out.idle_ms, allowed)},
           {"cpu", duration_into(out.cpu_ms, allowed)},
           {"io", size_into(out.io, allowed, Zero::refused)},
           {"not_required", list_into(out.not_required, "[\"memory\"]", releasable)}});
}

base::Result<std::string> resolver(std::string_view text) {
  if (const auto alone = parse_address(text)) return to_string(*alone);
  const auto colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : base::parse_number(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  const auto address = parse_address(host);
  if (!address || address->v6 != bracketed || !port || *port < 1 || *port > 65535) {
    return base::bad_input("", "no address of a resolver",
                           "expected an address such as \"192.0.2.53\" or \"192.0.2.53:5353\"");
  }
  return fmt::format("{}{}{}:{}", bracketed ? "[" : "", to_string(*address), bracketed ? "]" : "",
                     *port);
}

base::Result<std::string> any_text(std::string_view text) {
  if (text.empty() || text.contains('\0'))
    return base::bad_input("", "an empty text", "expected a text");
  return std::string(text);
}

Fault check_proxy_url(std::string_view text) {
  if (text.empty()) return {};
  const auto place = proxy_place(text);
  return place ? Fault{} : Fault{place.error().what, place.error().expected};
}

Fault check_proxy_auth(std::string_view key) {
  static constexpr std::array<std::string_view, 4> kKeys = {"user", "env", "file", "systemd"};
  if (std::ranges::find(kKeys, key) != kKeys.end()) return {};
  return {"unknown key " + base::printable(key.substr(0, 80)),
          "expected user, and one of env, file, systemd"};
}

// A user name and one place of a password, or neither.
base::Status check_proxy(const At& at, const UpstreamProxy& proxy) {
  const bool user = proxy.auth.contains("user");
  const std::size_t sources = proxy.auth.size() - (user ? 1 : 0);
  const std::string name = user ? proxy.auth.at("user") : "";
  const auto printable = [](char c) { return c > 0x20 && c != 0x7f && c != ':'; };
  if (!proxy.auth.empty() &&
      (sources != 1 || name.empty() || !std::ranges::all_of(name, printable))) {
    return at.bad("auth is not whole",
                  "expected { user = \"NAME\", env = \"VARIABLE\" }, or file or systemd for env");
  }
  if (proxy.url.empty() && (!proxy.auth.empty() || !proxy.no_proxy.empty())) {
    return at.bad("no url", "expected url beside no_proxy and auth");
  }
  return {};
}

base::Status read_upstream_proxy(const At& at, UpstreamProxy& out) {
  TRY(read_table(at, {{"url", string_into(out.url, check_proxy_url)},
                      {"no_proxy", list_into(out.no_proxy, "[\"example.com\"]", proxy_exception)},
                      {"auth", map_into(out.auth, "{ user = \"NAME\", env = \"VARIABLE\" }",
                                        check_proxy_auth)}}));
  return at.describing() ? base::Status() : check_proxy(at, out);
}

base::Status read_network(const At& at, Network& out) {
  return read_table(at, {{"default", name_into(out.fallback, kNetworkDefaults)},
                         {"mode", name_into(out.mode, kNetworkModes)},
                         {"resolvers", list_into(out.resolvers, "[\"192.0.2.53\"]", resolver)},
                         {"ca", list_into(out.ca, "[\"/etc/ssl/company.pem\"]", any_text)},
                         {"upstream_proxy", [&](const At& a) {
                            return read_upstream_proxy(a, out.upstream_proxy);
                          }}});
}

base::Status read_alerts(const At& at, Alerts& out) {
  return read_table(at, {{"blocked_range", name_into(out.blocked_range, kActions)},
                         {"new_destination", name_into(out.new_destination, kActions)},
                         {"request_spike", name_into(out.request_spike, kActions)},
                         {"placeholder_misuse", name_into(out.placeholder_misuse, kActions)},
                         {"placeholder_in_body", name_into(out.placeholder_in_body, kActions)},
                         {"canary", name_into(out.canary, kActions)}});
}

base::Status read_audit(const At& at, Audit& out) {
  return read_table(
      at, {{"exec", name_into(out.exec, kExecNeeds)}, {"journal", name_into(out.journal, kNeeds)}});
}

}  // namespace

base::Status read_policy(const At& root, Policy& policy) {
  const Node nothing;
  // Sections that are not there are read as empty, so that the origin of each default is known.
  const auto section = [&](std::string_view key,
                           const std::function<base::Status(const At&)>& read) {
    return root.node.find(key) != nullptr ? base::Status{}
                                          : read({root.reading, nothing, std::string(key)});
  };
  const std::vector<Field> sections = {
      {"isolation", [&](const At& at) { return read_isolation(at, policy.isolation); }},
      {"filesystem", [&](const At& at) { return read_filesystem(at, policy.filesystem); }},
      {"environment", [&](const At& at) { return read_environment(at, policy.environment); }},
      {"limits", [&](const At& at) { return read_limits(at, policy.limits); }},
      {"network", [&](const At& at) { return read_network(at, policy.network); }},
      {"alerts", [&](const At& at) { return read_alerts(at, policy.alerts); }},
      {"audit", [&](const At& at) { return read_audit(at, policy.audit); }}};
  std::vector<Field> fields = {{"version", read_version},
                               {"task", string_into(policy.task, check_label)},
                               {"code", name_into(policy.code, kCodes)}};
  fields.insert(fields.end(), sections.begin(), sections.end());
  fields.push_back({"egress", [&](const At& at) { return read_egress(at, policy); }});
  fields.push_back({"deny", [&](const At& at) { return read_deny(at, policy); }});
  fields.push_back({"credential", [&](const At& at) { return read_credentials(at, policy); }});
  TRY(read_table(root, fields));
  if (root.describing()) return {};
  for (const Field& field : sections) TRY(section(field.key, field.read));
  return {};
}

}  // namespace policy
