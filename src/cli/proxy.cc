// `cerco proxy`: the gateway alone, for code that something else isolates.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "cli/proxy_policy.h"
#include "cli/report_file.h"
#include "cli/report_text.h"
#include "cli/roots.h"
#include "cli/secrets.h"
#include "os/net.h"
#include "os/signals.h"
#include "plan/proxy.h"
#include "policy/upstream_proxy.h"
#include "supervisor/proxy.h"
#include "supervisor/run_report.h"

namespace cli {
namespace {

constexpr std::size_t kTokenSize = 52;  // characters of 5 bits each
constexpr std::size_t kLeastToken = 22;
constexpr std::size_t kMostToken = 256;
constexpr const char* kDefaultPlace = "127.0.0.1:3128";

struct Listener {
  base::Fd socket;
  std::string place;  // as it is bound
};

base::Result<Listener> listen_at(const std::string& text) {
  const std::string where = "--listen " + base::printable(text);
  const std::string expected = "expected ADDRESS:PORT such as 127.0.0.1:3128; port 0 for any";
  const auto colon = text.rfind(':');
  std::string_view host = std::string_view(text).substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto address = policy::parse_address(host);
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : base::parse_number(std::string_view(text).substr(colon + 1));
  if (!address || !port || *port > 65535) return base::bad_input(where, "no address", expected);
  const os::Endpoint at = {
      .v6 = address->v6, .address = address->bytes, .port = static_cast<std::uint16_t>(*port)};
  auto socket = os::listen(at);
  if (!socket) {
    base::Error error = std::move(socket).error();
    error.kind = base::Kind::bad_input;
    error.where = where;
    if (error.number == EADDRINUSE)
      error.expected = "expected another --listen ADDRESS:PORT; port 0 for any";
    return std::unexpected(std::move(error));
  }
  const os::Endpoint bound = TRY(os::local_endpoint(socket->get()));
  const std::string name = policy::to_string(*address);
  return Listener{std::move(*socket),
                  fmt::format("{}:{}", address->v6 ? "[" + name + "]" : name, bound.port)};
}

base::Result<std::vector<Listener>> listen(const Parsed& parsed) {
  std::vector<std::string> places = parsed.values("--listen");
  if (places.empty()) places.emplace_back(kDefaultPlace);
  std::vector<Listener> all;
  for (const std::string& place : places) all.push_back(TRY(listen_at(place)));
  return all;
}

// What stands in a URL as it is.
bool fits_url(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~").contains(c);
  });
}

// The task's token: the caller's, or a fresh one.
base::Result<std::string> token_of(const World& world, const Parsed& parsed,
                                   const policy::Policy& policy) {
  const auto file = parsed.value("--token-file");
  if (!file) return base::random_base32(kTokenSize);
  policy::Source source;
  source.kind = policy::SourceKind::file;
  source.name = *file;
  const base::Fd memfd = TRY(open_secret(world, policy, "--token-file", source));
  std::string token = TRY(os::read_all(memfd.get(), kMostToken, "--token-file"));
  if (token.size() < kLeastToken || !fits_url(token)) {
    base::wipe(token);
    return base::bad_input("--token-file", "no token",
                           "expected 22 to 256 of the characters A-Z a-z 0-9 - . _ ~");
  }
  return token;
}

base::Status write_out(const std::string& flag, const std::string& path, std::string_view text,
                       int how, unsigned mode) {
  auto fd = os::open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | how, mode);
  if (fd) return os::write_all(fd->get(), text, flag);
  base::Error error = std::move(fd).error();
  error.kind = base::Kind::bad_input;
  error.where = flag + " " + base::printable(path);
  return std::unexpected(std::move(error));
}

struct Ready {
  std::string run;
  std::string url;  // of the first listener, with the token
  std::vector<std::string> places;
  std::string token;
  std::string ca;  // the file, "" where there is none
};

// Variables for the code that is isolated elsewhere, one KEY=VALUE a line (`docker run
// --env-file`).
std::string environment_file(const plan::Plan& plan, const Ready& ready) {
  std::string out;
  for (const char* name :
       {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"}) {
    out += fmt::format("{}={}\n", name, ready.url);
  }
  out += "NO_PROXY=localhost,127.0.0.1,::1\nno_proxy=localhost,127.0.0.1,::1\n";
  out += "NODE_USE_ENV_PROXY=1\n";
  for (const policy::Credential& credential : plan.policy.credentials) {
    for (const auto& wanted : credential.env) {  // variable and field
      const auto found = std::ranges::find_if(plan.placeholders, [&](const auto& placeholder) {
        return placeholder.credential == credential.name && placeholder.field == wanted.second;
      });
      if (found != plan.placeholders.end()) {
        out += fmt::format("{}={}\n", wanted.first, found->value);
      }
    }
  }
  return out;
}

base::Status write_files(const Parsed& parsed, const plan::Plan& plan, const std::string& authority,
                         Ready& ready) {
  if (const auto path = parsed.value("--ca-out")) {
    TRY(write_out("--ca-out", *path, authority, O_TRUNC, 0644));
    ready.ca = *path;
  }
  if (const auto path = parsed.value("--env-out")) {
    // A new file: one that is there may be open to others, and this one holds the token.
    TRY(write_out("--env-out", *path, environment_file(plan, ready), O_EXCL, 0600));
  }
  return {};
}

void tell_ready(const World& world, const Parsed& parsed, const Ready& ready) {
  if (parsed.has("--json")) {
    print(world, base::JsonObject()
                         .add("run", ready.run)
                         .raw("listen", base::json_strings(ready.places))
                         .add("proxy", ready.url)
                         .add("token", ready.token)
                         .add("ca", ready.ca)
                         .text() +
                     "\n");
    return;
  }
  // With a file for the variables the token stays off the terminal.
  print(world, fmt::format("run {}\nlistening on {}\n", ready.run, base::join(ready.places, ", ")));
  if (!parsed.has("--env-out") && !parsed.has("--token-file")) {
    print(world, fmt::format("proxy {}\n", ready.url));
  }
}

std::string report_of(const plan::Plan& plan, const os::Instant& started,
                      const supervisor::ProxyEnd& end) {
  supervisor::RunReport report;
  report.version = kVersion;
  report.run = plan.run;
  report.task = plan.policy.task;
  report.tier = "none";
  report.unheld = plan.unheld;
  report.policy_sha256 = plan.policy_sha256;
  report.started = started;
  report.ended = os::wall_time();
  report.status = end.status;
  report.ending = end.ending;
  report.summary = end.summary;
  return supervisor::report_json(report);
}

// What is left to others is said, and kept in the record; with --strict it stops the start.
base::Status tell_left(const World& world, const Parsed& parsed, const policy::Effective& effective,
                       plan::Plan& plan) {
  const std::vector<LeftKey> left = TRY(left_to_others(effective));
  const std::string text = left_text(left);
  if (text.empty()) return {};
  if (parsed.has("--strict")) {
    return base::bad_input("--strict", text, "expected a policy without them, or `cerco run`");
  }
  print_error(world, "cerco: " + base::printable(text) + "\n");
  for (const LeftKey& one : left) plan.unheld.push_back(one.key);
  return {};
}

base::Status check_policy(const Parsed& parsed, const plan::Plan& plan) {
  if (!plan.terminates || parsed.has("--ca-out")) return {};
  return base::bad_input("proxy", "the policy looks into TLS, and nobody trusts its authority",
                         "expected --ca-out FILE, for the clients' trust stores");
}

}  // namespace

base::Result<int> proxy(const World& world, const Parsed& parsed) {
  TRY(want_words("proxy", parsed, 0, "[FLAGS]"));
  constexpr std::array kEnds = {SIGTERM, SIGINT, SIGHUP};
  const base::Fd signals = TRY(os::signal_descriptor(kEnds));
  os::ignore_sigpipe();
  const os::Instant started = os::wall_time();
  const ReportFile report = TRY(ReportFile::open(parsed.value("--report"), world.state_dir));
  const plan::HostFacts host = TRY(host_facts(world));
  const policy::Effective effective = TRY(load_policy(world, parsed, host.size));
  for (const std::string& warning : effective.warnings) {
    print_error(world, "cerco: " + base::printable(warning) + "\n");
  }
  plan::Plan plan = TRY(plan::make_proxy(effective.policy, host, base::random_base32));
  TRY(tell_left(world, parsed, effective, plan));
  if (world.edit_plan) world.edit_plan(plan);
  TRY(check_policy(parsed, plan));
  std::vector<Listener> listeners = TRY(listen(parsed));
  std::string token = TRY(token_of(world, parsed, plan.policy));
  supervisor::ProxyLaunch launch = {plan, TRY(open_roots(host, plan)),
                                    TRY(open_secrets(world, plan.policy))};
  const auto running = TRY(supervisor::Proxy::start(std::move(launch)));
  Ready ready = {.run = plan.run,
                 .url = fmt::format("http://task:{}@{}", token, listeners.front().place),
                 .places = {},
                 .token = token,
                 .ca = {}};
  std::vector<base::Fd> sockets;
  for (Listener& listener : listeners) {
    ready.places.push_back(listener.place);
    sockets.push_back(std::move(listener.socket));
  }
  TRY(write_files(parsed, plan, running->authority(), ready));
  TRY(running->open(std::move(sockets), base::sha256(token)));
  tell_ready(world, parsed, ready);
  for (std::string* text : {&token, &ready.token, &ready.url}) base::wipe(*text);
  const supervisor::ProxyEnd end = running->serve(signals.get());
  const std::string json = report_of(plan, started, end);
  TRY(keep_report(world.state_dir, plan.run, json));
  TRY(report.write(json));
  for (const std::string& note : end.notes) print_error(world, "cerco: " + note + "\n");
  print_error(world, refusal_block(end.summary));
  return static_cast<int>(end.status);
}

}  // namespace cli
