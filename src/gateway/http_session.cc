// One request at a time, from its head to its end; the page to read is serve_one().
#include "gateway/http_session.h"

#include <algorithm>
#include <cerrno>

#include "gateway/proxy_token.h"
#include "gateway/relay.h"

namespace gateway {
namespace {

constexpr std::size_t kRead = std::size_t{16} * 1024;

// Where in the request a secret stands once it is injected.
struct SecretPlaces {
  std::vector<std::string> fields;
  bool target = false;
  bool body = false;
};

SecretPlaces secret_places(const Credentials& credentials, const Handling& handling) {
  SecretPlaces places;
  for (const Injection& injection : handling.injections) {
    const http::Slot& slot = credentials.slot_of(injection.credential);
    switch (slot.place) {
      case http::Place::header:
      case http::Place::basic:
        places.fields.push_back(slot.header);
        break;
      case http::Place::query:
      case http::Place::path:
        places.target = true;
        break;
      case http::Place::body:
        places.body = true;
        break;
      case http::Place::sigv4:
        places.fields.emplace_back("x-amz-security-token");
        break;
      case http::Place::none:
        break;
    }
  }
  return places;
}

std::set<std::size_t> users_of(const Handling& handling) {
  std::set<std::size_t> users;
  for (const Injection& injection : handling.injections) users.insert(injection.credential);
  return users;
}

}  // namespace

HttpSession::HttpSession(Connection& connection, Target target, http::Leg leg)
    : core_(connection.core), connection_(connection), target_(std::move(target)), leg_(leg) {
  admission_.leg = leg;
  admission_.strictness = core_.holds(plan::Protection::strict_http) ? http::Strictness::strict
                                                                     : http::Strictness::careless;
  admission_.protected_names = core_.credentials.header_names();
}

asio::awaitable<void> HttpSession::run() {
  while (co_await serve_one() == Next::again) {
  }
  if (decided_) co_return;
  // Every connection leaves one decision at least.
  Decision decision = this->decision({});
  decision.verdict = "allow";
  decision.reason = "no-request";
  (void)core_.recorder.decision(decision);
  (void)co_await core_.recorder.handed_over(connection_.wake);
}

asio::awaitable<HttpSession::Next> HttpSession::serve_one() {
  const auto length = co_await read_head();
  if (!length) co_return Next::end;
  if (!*length) co_return co_await reject(length->error());
  Asked asked;
  asked.since = Clock::now();
  if (auto rejection = admit(**length, asked)) co_return co_await reject(*rejection);
  if (tunnel_) co_return Next::end;
  decide(asked);
  const Carrying carrying(connection_, asked.request, asked.verdict.treatment);
  if (asked.verdict.allow && !asked.handling.bodies.empty() && !co_await look_into_body(asked)) {
    co_return Next::end;
  }
  if (asked.verdict.allow) {
    // Counted before anything is waited for: requests of other connections come meanwhile.
    count(asked, 1);
    co_await find_way(asked);
    if (!asked.verdict.allow) count(asked, -1);
  }
  if (!co_await record(asked)) co_return Next::end;
  if (!asked.verdict.allow) {
    const bool misdirected = asked.verdict.reason == "misdirected";
    co_return co_await refuse(asked, misdirected ? 421 : 403, asked.verdict.reason);
  }
  co_return co_await carry_out(asked);
}

// --- From bytes to a decision ------------------------------------------------------------------

asio::awaitable<std::optional<http::Parsed<std::size_t>>> HttpSession::read_head() {
  std::size_t seen = 0;
  bool begun = !from_client_.empty();
  connection_.allow(begun ? core_.limits.head : core_.limits.idle);
  // After an answer the next request is seldom there already: to wait first saves a call in vain.
  if (!begun && decided_ && !connection_.client->holds_bytes()) {
    connection_.client->arm_read();
    if (!co_await connection_.pause()) co_return std::nullopt;
  }
  while (true) {
    const auto whole = http::find_head_end(from_client_.view(), seen);
    if (!whole || *whole != 0) co_return whole;
    const os::Moved got = co_await read_some_head(seen);
    if (got.failed() || got.end()) {
      if (!begun) co_return std::nullopt;
      co_return std::unexpected(http::Rejection{
          .status = 400, .reason = "incomplete", .text = "the request was cut off"});
    }
    from_client_.added(got.bytes);
    if (!begun) connection_.allow(core_.limits.head);
    begun = true;
  }
}

// A proxy's client may send what is for the tunnel right behind its CONNECT: of that not a byte is
// taken out of the socket.
asio::awaitable<os::Moved> HttpSession::read_some_head(std::size_t& seen) {
  const std::size_t held = from_client_.view().size();
  seen = held;
  std::span<char> room = from_client_.make_room(kRead);
  if (leg_ == http::Leg::proxy) {
    const os::Moved there = co_await connection_.peek(*connection_.client, room);
    if (there.failed() || there.end()) co_return there;
    const auto whole = http::find_head_end({from_client_.view().data(), held + there.bytes}, seen);
    room = room.first(whole && *whole != 0 ? *whole - held : there.bytes);
  }
  co_return co_await connection_.read(*connection_.client, room);
}

// Of a proxy's request: where it goes. What was kept open to another place is of no use to it.
std::optional<http::Rejection> HttpSession::go_to(const http::RequestHead& head,
                                                  const Target& before) {
  auto target = find_target(core_, head.host, head.port.value_or(usual_port()));
  if (!target) return http::Rejection{.status = 400, .reason = "host", .text = target.error().what};
  if (head.method == "CONNECT") {
    if (!from_client_.empty()) {
      return http::Rejection{.status = 400, .reason = "connect", .text = "CONNECT in a pipeline"};
    }
    drop_upstream();
    tunnel_ = std::move(*target);
    decided_ = true;  // by whoever carries the tunnel
    return std::nullopt;
  }
  if (target->host != before.host || target->port != before.port) drop_upstream();
  target_ = std::move(*target);
  return std::nullopt;
}

// Whether Host names what the connection was made to; anything else is another origin's business.
bool HttpSession::stands_for_target(const http::RequestHead& head) const {
  const auto host = policy::canonical_host(head.host);
  return host && *host == target_.host && head.port.value_or(usual_port()) == target_.port;
}

// One name has many spellings ("api.test.", ":443"): what goes out is the one that was judged, so
// that no server takes it for another.
void HttpSession::write_host_as_judged(http::RequestHead& head) const {
  const std::string& name = target_.host.name;
  head.host = name.contains(':') ? "[" + name + "]" : name;
  head.port.reset();
  if (target_.port != usual_port()) head.port = target_.port;
}

std::optional<http::Rejection> HttpSession::admit(std::size_t length, Asked& asked) {
  std::vector<http::Field> dropped;
  const Target before = leg_ == http::Leg::proxy ? std::exchange(target_, {}) : Target();
  auto head = http::parse_request(from_client_.view().substr(0, length), admission_, &dropped);
  if (!head) return head.error();
  from_client_.consume(length);
  asked.head = std::move(*head);
  if (leg_ == http::Leg::proxy) {
    if (!shows_token(core_, dropped)) {
      return http::Rejection{
          .status = 407, .reason = "proxy-token", .text = "this proxy wants its task's token"};
    }
    if (auto rejection = go_to(asked.head, before)) return rejection;
    if (tunnel_) return std::nullopt;
  }
  if (asked.head.host.empty()) {  // HTTP/1.0
    asked.head.host = target_.host.name;
    if (target_.port != usual_port()) asked.head.port = target_.port;
  } else if (stands_for_target(asked.head)) {
    write_host_as_judged(asked.head);
  }
  asked.request = {.scheme = leg_ == http::Leg::tls ? policy::Scheme::tls : policy::Scheme::http,
                   .host = target_.host,
                   .port = target_.port,
                   .method = asked.head.method};
  if (asked.head.target != "*") {
    auto path = policy::canonical_path(
        asked.head.target,
        policy::encoded_slash_allowed(core_.policy(), target_.host.name, target_.port));
    if (!path) {
      return http::Rejection{.status = 400, .reason = "path", .text = path.error().what};
    }
    asked.request.path = std::move(*path);
  }
  for (const http::Field& field : asked.head.fields) {
    asked.request.headers.emplace_back(field.name, field.value);
  }
  for (const http::Field& field : dropped) {
    asked.request.dropped.emplace_back(field.name, field.value);
  }
  return std::nullopt;
}

void HttpSession::decide(Asked& asked) {
  const auto refuse = [&](std::string reason) {
    asked.verdict.allow = false;
    asked.verdict.audit = false;
    asked.verdict.reason = std::move(reason);
    asked.verdict.fix.clear();
  };
  if (core_.cut) return refuse("cut");
  if (!target_.problem.empty()) return refuse(target_.problem);
  if (core_.holds(plan::Protection::sni_check) && !stands_for_target(asked.head)) {
    return refuse("misdirected");
  }
  asked.verdict = policy::decide_request(core_.policy(), asked.request);
  if (!asked.verdict.allow && !core_.holds(plan::Protection::name_filter)) {
    asked.verdict = {.allow = true, .treatment = policy::Treatment::inspect};
  }
  if (asked.verdict.allow) {
    // Names that go out this way are judged by nobody (N94).
    const std::string problem =
        http::carries_dns(asked.head.fields) ? "dns-over-https" : budget_problem(asked);
    if (!problem.empty()) refuse(problem);
  }
  if (!core_.credentials.any()) return;
  // Also where the rules refuse: a placeholder that is out of place is told of in any case.
  asked.handling =
      core_.credentials.handle(asked.head, asked.request, rule_of(core_, asked.verdict));
  const std::string& reason = asked.handling.reason;
  if (!reason.empty() && (asked.verdict.allow || asked.handling.misuse)) refuse(reason);
}

std::string HttpSession::budget_problem(const Asked& asked) const {
  const policy::Egress* rule = rule_of(core_, asked.verdict);
  if (rule == nullptr) return {};
  const Used& used = *used_by(core_, asked.verdict);
  const http::Body& body = asked.head.body;
  if (used.requests >= rule->max_requests) return "max-requests";
  const Budget budget = budget_of(core_, asked.verdict);
  if (budget.up.left() == 0 || budget.down.left() == 0) return "budget";
  if (body.framing == http::Framing::length && body.length > budget.up.left()) return "budget";
  if (body.framing == http::Framing::length && body.length > rule->max_body) return "max-body";
  return {};
}

// Resolves and judges the name's addresses, once for each connection that is to be made. A kept one
// that has ended meanwhile, or that has spoken unasked, is made anew.
asio::awaitable<void> HttpSession::find_way(Asked& asked) {
  // A connection is for one set of credentials: what a server knows of it by an earlier request, by
  // its certificate most of all, decides about no other one's (N179, N180).
  const bool same = users_of(asked.handling) == users_;
  if (connection_.upstream && same && connection_.upstream->quiet()) co_return;
  drop_upstream();
  auto vetted = co_await find_route(core_, target_, rule_of(core_, asked.verdict));
  if (!vetted) {
    asked.unresolved =
        vetted.error().kind == base::Kind::not_found ? "no-such-name" : "name-server";
    co_return;
  }
  asked.vetted = std::move(*vetted);
  mixed_ = asked.vetted.mixed();
  if (!asked.vetted.passed.empty()) {
    address_ = policy::to_string(asked.vetted.passed.front().address());
    co_return;
  }
  address_ = asked.vetted.refused;
  asked.verdict.allow = false;
  asked.verdict.audit = false;
  asked.verdict.reason = asked.vetted.reason;
  asked.verdict.fix.clear();
}

void HttpSession::count(const Asked& asked, int requests) {
  if (Used* used = used_by(core_, asked.verdict)) used->requests += requests;
}

// --- Carrying out ------------------------------------------------------------------------------

asio::awaitable<HttpSession::Next> HttpSession::carry_out(Asked& asked) {
  std::string certificate;
  if (const auto over = co_await lease_certificate(asked, certificate)) co_return *over;
  const std::string problem = co_await connect(asked, certificate);
  base::wipe(certificate);
  if (!problem.empty()) ended(asked, 502, {.problem = problem});
  if (connection_.stopped()) co_return Next::end;
  if (!problem.empty()) co_return co_await refuse(asked, 502, problem);
  if (core_.credentials.any()) {
    core_.credentials.strip(asked.head, asked.handling);
    // What comes back must be readable, and whole, for a secret to be taken out of it (N164).
    http::set_field(asked.head.fields, "accept-encoding", "identity");
    if (!core_.credentials.signs(asked.handling)) {
      http::remove_fields(asked.head.fields, "range");
      http::remove_fields(asked.head.fields, "if-range");
    }
    http::remove_fields(asked.head.fields, "sec-websocket-extensions");
    if (const auto over = co_await inject(asked)) co_return *over;
  }
  const SecretPlaces secret = secret_places(core_.credentials, asked.handling);
  const policy::Egress* rule = rule_of(core_, asked.verdict);
  ExchangeEnd end =
      co_await exchange({.connection = connection_,
                         .request = asked.head,
                         .from_client = from_client_,
                         .from_upstream = from_upstream_,
                         .marked = core_.credentials.marked(),
                         .redactions = core_.credentials.redactions(),
                         .most_body = rule != nullptr ? rule->max_body : policy::kUnlimited,
                         .budget = budget_of(core_, asked.verdict),
                         .cookies = asked.handling.drop_cookies ? Cookies::drop : Cookies::pass,
                         .secret_fields = secret.fields,
                         .secret_target = secret.target});
  if (secret.body) from_client_.scrub();
  co_return co_await after(asked, std::move(end));
}

asio::awaitable<std::string> HttpSession::connect(Asked& asked, const std::string& certificate) {
  if (connection_.upstream) co_return std::string();
  if (!asked.unresolved.empty()) co_return asked.unresolved;
  const auto address = co_await dial(connection_, asked.vetted, target_.port);
  if (!address) co_return dial_problem(address.error());
  reused_ = false;
  verified_tls_ = false;
  address_ = policy::to_string(*address);
  users_ = users_of(asked.handling);
  if (leg_ != http::Leg::tls) co_return std::string();
  co_return co_await shake_hands(certificate);
}

asio::awaitable<std::string> HttpSession::shake_hands(const std::string& certificate) {
  connection_.allow(core_.limits.handshake);
  auto context = core_.upstream_tls();
  if (!context ||
      !connection_.upstream->start_tls(*context, Stream::Side::client, target_.host.name)) {
    drop_upstream();
    co_return std::string("upstream_tls");
  }
  if (!certificate.empty() && !connection_.upstream->present(certificate)) {
    drop_upstream();
    co_return std::string("client_certificate");
  }
  if (co_await connection_.handshake(*connection_.upstream) != 0) {
    const bool untrusted = !connection_.upstream->certificate_problem().empty();
    drop_upstream();
    co_return std::string(untrusted ? "upstream_certificate" : "upstream_tls");
  }
  verified_tls_ = core_.holds(plan::Protection::upstream_verify);
  co_return std::string();
}

void HttpSession::drop_upstream() {
  gateway::drop_upstream(connection_);
  from_upstream_.clear();
}

void HttpSession::ended(const Asked& asked, unsigned status, const ExchangeEnd& end) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - asked.since).count();
  core_.recorder.ended(asked.ref, {.status = status,
                                   .bytes_up = end.up,
                                   .bytes_down = end.down,
                                   .ms = static_cast<std::uint64_t>(ms),
                                   .problem = end.problem});
}

asio::awaitable<HttpSession::Next> HttpSession::after(Asked& asked, ExchangeEnd end) {
  for (const std::size_t mark : end.in_body) {
    base::JsonObject object;
    object.add("credential", core_.credentials.name_of_mark(mark));
    object.add("reason", "placeholder_in_body").add("host", target_.host.name);
    object.add("port", target_.port).add("method", asked.head.method);
    object.add("path", asked.request.path);
    if (!core_.recorder.event("credential.refused", object.members())) co_return Next::end;
  }
  ended(asked, end.status, end);
  if (end.upgraded && end.problem.empty()) co_return co_await upgrade(asked);
  if (!end.keep_upstream) drop_upstream();
  // A kept connection that its server closed just now: the client sees the same, and tries again.
  if (end.silent && std::exchange(reused_, true)) co_return Next::end;
  reused_ = true;
  if (end.keep_client) co_return Next::again;
  if (end.problem.empty()) {
    co_await linger();
  } else if (!end.answered && end.problem != "client" && !connection_.stopped()) {
    const unsigned status = end.problem == "max-body" ? 413 : end.problem == "budget" ? 403 : 502;
    asked.head.keep_alive = false;
    co_return co_await refuse(asked, status, end.problem);
  } else {
    // The answer was begun and cannot be ended in order: the client must not take it for whole.
    connection_.client->reset();
  }
  co_return Next::end;
}

asio::awaitable<HttpSession::Next> HttpSession::upgrade(Asked& asked) {
  // To the rule what goes up in a WebSocket is a body.
  const policy::Egress* rule = rule_of(core_, asked.verdict);
  http::FrameRedactor frames(core_.credentials.redactions());
  const bool redacted = core_.credentials.any() && core_.holds(plan::Protection::redaction);
  const Relayed relayed =
      co_await relay(connection_, {.up = from_client_.take(),
                                   .down = from_upstream_.take(),
                                   .budget = budget_of(core_, asked.verdict),
                                   .most_up = rule != nullptr ? rule->max_body : policy::kUnlimited,
                                   .frames = redacted ? &frames : nullptr});
  ended(asked, 101, {.up = relayed.up, .down = relayed.down, .problem = relayed.problem});
  co_return Next::end;
}

}  // namespace gateway
