// One request at a time, from its head to its end; the page to read is serve_one().
#include "gateway/http_session.h"

#include <algorithm>
#include <array>
#include <cerrno>

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

// RFC 9110 section 9.2.2.
bool may_be_repeated(std::string_view method) {
  constexpr std::array<std::string_view, 5> kIdempotent = {"GET", "HEAD", "OPTIONS", "PUT",
                                                           "DELETE"};
  return std::ranges::find(kIdempotent, method) != kIdempotent.end();
}

}  // namespace

HttpSession::HttpSession(Connection& connection, Target target, http::Leg leg,
                         H2Upstreams* upstreams)
    : core_(connection.core),
      connection_(connection),
      target_(std::move(target)),
      leg_(leg),
      upstreams_(upstreams) {
  admission_.leg = leg;
  admission_.strictness = core_.holds(plan::Protection::strict_http) ? http::Strictness::strict
                                                                     : http::Strictness::careless;
  admission_.protected_names = core_.credentials.header_names();
}

asio::awaitable<void> HttpSession::run() {
  while (co_await serve_one() == Next::again) {
  }
  if (upstreams_ != nullptr && connection_.upstream && !connection_.stopped()) {
    upstreams_->keep(connection_, users_, address_, verified_tls_);
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
  // Counted before anything is waited for: requests of other connections come meanwhile.
  const bool counted = asked.verdict.allow;
  if (counted) count(asked, 1);
  if (counted && !asked.handling.bodies.empty() && !co_await look_into_body(asked)) {
    count(asked, -1);
    co_return Next::end;
  }
  if (asked.verdict.allow) co_await find_way(asked);
  if (counted && !asked.verdict.allow) count(asked, -1);
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
                         .canaries = core_.canaries.needles(),
                         .redactions = core_.credentials.redactions(),
                         .most_body = rule != nullptr ? rule->max_body : policy::kUnlimited,
                         .budget = budget_of(core_, asked.verdict),
                         .cookies = asked.handling.drop_cookies ? Cookies::drop : Cookies::pass,
                         .secret_fields = secret.fields,
                         .secret_target = secret.target});
  if (secret.body) from_client_.scrub();
  co_return co_await after(asked, std::move(end));
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
  if (end.canary && !record_canary(asked, *end.canary)) co_return Next::end;
  ended(asked, end.status, end);
  if (end.upgraded && end.problem.empty()) co_return co_await upgrade(asked);
  const bool untouched = end.silent && connection_.upstream->refused();
  if (!end.keep_upstream) drop_upstream();
  // A kept connection that its server closed just now: the client sees the same, and tries again.
  if (end.silent && (std::exchange(reused_, true) || untouched)) {
    if (untouched || may_be_repeated(asked.head.method)) connection_.client->turn_down();
    co_return Next::end;
  }
  reused_ = true;
  if (end.keep_client) co_return Next::again;
  if (end.problem.empty()) {
    co_await linger();
  } else if (!end.answered && end.problem != "client" && !connection_.stopped()) {
    const bool refused = end.problem == "budget" || end.problem == "canary";
    const unsigned status = end.problem == "max-body" ? 413 : refused ? 403 : 502;
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
