// The flow of one connection, top to bottom: where it was going, what it says, what the policy
// says, the record, and then the act.
#include "gateway/session.h"

#include "gateway/credentials.h"
#include "gateway/h2_session.h"
#include "gateway/http_session.h"
#include "gateway/opening.h"
#include "gateway/postgres.h"
#include "gateway/proxy.h"
#include "gateway/relay.h"
#include "gateway/target.h"

namespace gateway {
namespace {

struct Judged {
  policy::Verdict verdict;
  policy::Scheme scheme = policy::Scheme::tcp;
  std::string silent;   // an allowed connection that ended before it said anything, and how
  std::string address;  // that will be dialled, or that was refused
  bool range = false;   // it was refused for its addresses
  bool mixed = false;
  std::string problem;  // why there is no address to dial
};

policy::Verdict refuse(std::string reason) {
  policy::Verdict verdict;
  verdict.reason = std::move(reason);
  return verdict;
}

policy::Verdict ask(const Core& core, const Target& target, policy::Scheme scheme) {
  return policy::decide_connection(core.policy(),
                                   {.scheme = scheme, .host = target.host, .port = target.port});
}

// At a public address without a rule a client may ask for no name or for one that might be reached
// uninspected under its own; else a literal would be the way around what is said of names.
std::string literal_problem(const Core& core, const Target& target, const http::Hello& hello) {
  if (hello.server_name.empty()) return {};
  const auto name = policy::canonical_host(hello.server_name);
  if (!name) return "sni-mismatch";
  const policy::Verdict verdict = policy::decide_connection(
      core.policy(), {.scheme = policy::Scheme::tls, .host = *name, .port = target.port});
  const bool tunnelled = verdict.allow && verdict.treatment == policy::Treatment::tunnel;
  return tunnelled ? "" : "sni-mismatch";
}

// TLS for another name than the one that was looked up is somebody else's (N52, N56); without a
// name nobody can tell whose it is (N57), and an encrypted name hides it (N64).
std::string name_problem(const Core& core, const Target& target, const http::Hello& hello) {
  if (!core.holds(plan::Protection::sni_check)) return {};
  if (target.literal) return literal_problem(core, target, hello);
  if (hello.server_name.empty()) return "sni-missing";
  if (hello.server_name != target.host.name) return "sni-mismatch";
  return {};
}

// Raw where a rule says so, without a look at the bytes; else by what they are.
asio::awaitable<Judged> judge(Connection& connection, const Target& target) {
  Core& core = connection.core;
  if (core.cut) co_return Judged{.verdict = refuse("cut")};
  if (!target.problem.empty()) co_return Judged{.verdict = refuse(target.problem)};
  Judged judged{.verdict = ask(core, target, policy::Scheme::tcp)};
  const bool undecided = judged.verdict.reason == "protocol";
  if (judged.verdict.allow || (target.literal && !undecided)) co_return judged;
  Opening opening = co_await look(connection);
  judged.scheme = opening.scheme;
  if (core.cut) {
    judged.verdict = refuse("cut");
    co_return judged;
  }
  if (undecided && opening.silent) {
    judged.silent = opening.problem;
    co_return judged;
  }
  judged.verdict = ask(core, target, opening.scheme);
  if (!judged.verdict.allow && !core.holds(plan::Protection::name_filter)) {
    judged.verdict = {.allow = true, .treatment = policy::Treatment::tunnel};
  }
  if (!judged.verdict.allow) co_return judged;
  if (opening.scheme == policy::Scheme::tls && opening.problem.empty()) {
    opening.problem = name_problem(core, target, opening.hello);
  }
  if (!opening.problem.empty()) judged.verdict = refuse(opening.problem);
  co_return judged;
}

Decision decision_of(const Connection& connection, const Target& target, const Judged& judged) {
  Decision decision;
  decision.way = to_string(connection.way);
  decision.conn = connection.id;
  decision.host = target.host.name;
  decision.port = target.port;
  if (!judged.silent.empty()) {
    decision.verdict = "allow";
    decision.reason = judged.silent;
    return decision;
  }
  decision.policy = judged.verdict.revision;
  decision.verdict = verdict_word(judged.verdict);
  decision.rule = judged.verdict.rule;
  decision.reason = judged.verdict.reason;
  decision.fix = judged.verdict.fix;
  decision.address = judged.address;
  decision.mixed = judged.mixed;
  if (decision.verdict != "allow")
    decision.kind = judged.range ? "range" : kind_of(decision.reason);
  if (judged.scheme == policy::Scheme::tls) decision.tls = "opaque";
  return decision;
}

http::Refusal refusal_of(const Connection& connection, const Target& target,
                         const policy::Verdict& verdict, std::string reason) {
  return {.reason = std::move(reason),
          .rule = verdict.rule,
          .host = target.host.name,
          .port = target.port,
          .method = connection.way == Way::connect ? "CONNECT" : "",
          .path = {},
          .fix = verdict.fix};
}

asio::awaitable<void> turn_away(Connection& connection, const Target& target,
                                const Judged& judged) {
  const http::Refusal refusal =
      refusal_of(connection, target, judged.verdict, judged.verdict.reason);
  co_await turn_away(connection, judged.scheme,
                     http::refusal_response(403, refusal, http::After::close));
}

// Records that it was refused, then refuses.
asio::awaitable<void> deny(Connection& connection, const Target& target, const Judged& judged) {
  (void)connection.core.recorder.decision(decision_of(connection, target, judged));
  if (!co_await connection.core.recorder.handed_over(connection.wake)) co_return;
  co_await turn_away(connection, target, judged);
}

// The addresses that it may go to, judged; those that passed are left in the target.
asio::awaitable<void> vet(Core& core, Target& target, Judged& judged) {
  auto vetted = co_await find_route(core, target, rule_of(core, judged.verdict));
  if (!vetted) {
    judged.problem = vetted.error().kind == base::Kind::not_found ? "no-such-name" : "name-server";
    co_return;
  }
  judged.mixed = vetted->mixed();
  judged.range = vetted->passed.empty();
  if (judged.range) {
    judged.address = vetted->refused;
    judged.verdict = refuse(vetted->reason);
    co_return;
  }
  judged.address = policy::to_string(vetted->passed.front().address());
  target.vetted = std::move(*vetted);
}

// What a proxy's client is told before it has shown what it speaks: whether anything may go there
// at all. A raw tunnel is told of once it is there.
Judged foresee(const Core& core, const Target& target) {
  Judged judged;
  if (core.cut || !target.problem.empty()) {
    judged.verdict = refuse(core.cut ? "cut" : target.problem);
    return judged;
  }
  for (const auto scheme : {policy::Scheme::tcp, policy::Scheme::http, policy::Scheme::tls}) {
    judged.scheme = scheme;
    judged.verdict = ask(core, target, scheme);
    if (judged.verdict.allow) return judged;
  }
  if (!core.holds(plan::Protection::name_filter) && !target.literal) {
    judged.verdict = {.allow = true};
  }
  return judged;
}

// False: it was refused, or cannot be reached, and that was said.
asio::awaitable<bool> let_in(Connection& connection, Target& target) {
  Core& core = connection.core;
  Judged judged = foresee(core, target);
  const bool raw = judged.verdict.allow && judged.scheme == policy::Scheme::tcp;
  if (raw) co_return true;
  if (judged.verdict.allow) co_await vet(core, target, judged);
  if (judged.verdict.allow && judged.problem.empty()) {
    co_return co_await open_tunnel(connection) == 0;
  }
  if (!judged.verdict.allow) {
    co_await deny(connection, target, judged);
    co_return false;
  }
  const std::uint64_t ref = core.recorder.decision(decision_of(connection, target, judged));
  if (!co_await core.recorder.handed_over(connection.wake)) co_return false;
  core.recorder.ended(ref, {.problem = judged.problem});
  co_await no_way(connection, refusal_of(connection, target, judged.verdict, judged.problem));
  co_return false;
}

// Bytes both ways; of TLS, the client's hello goes out as it came.
asio::awaitable<void> tunnel(Connection& connection, Target target, Judged judged) {
  Core& core = connection.core;
  const auto since = Clock::now();
  const policy::Request request{.scheme = judged.scheme, .host = target.host, .port = target.port};
  const Carrying carrying(connection, request, judged.verdict.treatment);
  co_await vet(core, target, judged);
  const std::uint64_t ref = core.recorder.decision(decision_of(connection, target, judged));
  const bool recorded = co_await core.recorder.handed_over(connection.wake);
  if (!recorded || !judged.verdict.allow || connection.stopped()) {
    co_return co_await turn_away(connection, target, judged);
  }
  Relayed relayed{.problem = judged.problem};
  // Where a session's password is the gateway's to prove, it is dialled once the client has begun.
  const bool postgres =
      judged.scheme == policy::Scheme::tcp && core.credentials.speaks_postgres(request);
  if (judged.problem.empty() && !postgres) {
    const auto dialled = co_await dial(connection, *target.vetted, target.port);
    if (!dialled) relayed.problem = dial_problem(dialled.error());
  }
  const auto ended = [&] {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - since);
    core.recorder.ended(ref, {.status = 0,
                              .bytes_up = relayed.up,
                              .bytes_down = relayed.down,
                              .ms = static_cast<std::uint64_t>(ms.count()),
                              .problem = relayed.problem});
  };
  if (!relayed.problem.empty()) {
    ended();
    co_return co_await no_way(connection,
                              refusal_of(connection, target, judged.verdict, relayed.problem));
  }
  if (co_await open_tunnel(connection) != 0) {
    relayed.problem = "client";
  } else if (postgres) {
    relayed = co_await serve_postgres(
        connection, {.target = target, .budget = budget_of(core, judged.verdict)});
  } else {
    // Of TLS that ends elsewhere there is nothing to see.
    const bool plain = judged.scheme != policy::Scheme::tls;
    relayed = co_await relay(connection, {.budget = budget_of(core, judged.verdict),
                                          .canaries = plain ? &core.canaries.needles() : nullptr});
  }
  if (relayed.canary) {
    (void)record_sight(core.recorder, core.canaries.at(*relayed.canary, "bytes"),
                       {.host = target.host.name, .port = target.port});
  }
  ended();
}

// TLS ends here, with a leaf for this one name; inside is HTTP.
asio::awaitable<void> terminate(Connection& connection, const Target& target,
                                const Judged& judged) {
  Core& core = connection.core;
  std::string problem = "no-authority";
  if (core.authority != nullptr) {
    connection.allow(core.limits.handshake);
    auto context = core.authority->server_context(target.host.name);
    if (context && connection.client->start_tls(*context, Stream::Side::server, "")) {
      problem = co_await connection.handshake(*connection.client) == 0 ? "" : "client-handshake";
    }
  }
  if (problem.empty()) {
    if (connection.client->protocol() == "h2") {
      H2Session session(connection, target);
      co_return co_await session.run();
    }
    HttpSession session(connection, target, http::Leg::tls, nullptr);
    co_return co_await session.run();
  }
  Decision decision = decision_of(connection, target, judged);
  decision.verdict = "reject";
  decision.kind = "protocol";
  decision.reason = problem;
  decision.tls = "terminated";
  (void)core.recorder.decision(decision);
  (void)co_await core.recorder.handed_over(connection.wake);
}

}  // namespace

asio::awaitable<void> serve_target(Connection& connection, Target target) {
  if (const auto sight = connection.core.canaries.in_name(target.host.name)) {
    (void)record_sight(connection.core.recorder, *sight,
                       {.host = target.host.name, .port = target.port});
    co_return co_await deny(connection, target, {.verdict = refuse("canary")});
  }
  if (connection.waits && !co_await let_in(connection, target)) co_return;
  const Judged judged = co_await judge(connection, target);
  if (!judged.verdict.allow) co_return co_await deny(connection, target, judged);
  if (judged.verdict.treatment == policy::Treatment::tunnel) {
    co_return co_await tunnel(connection, std::move(target), judged);
  }
  if (judged.scheme == policy::Scheme::tls) {
    co_return co_await terminate(connection, target, judged);
  }
  HttpSession session(connection, std::move(target), http::Leg::plain, nullptr);
  co_await session.run();
}

asio::awaitable<void> serve_busy(Core& core, base::Fd socket) {
  Connection connection(core, std::move(socket));
  const auto destination = core.destination_of(connection.client->fd());
  if (!destination) co_return;
  const Target target = find_target(core, *destination);
  Judged judged{.verdict = refuse("too-many-connections")};
  connection.allow(core.limits.linger);
  char first = 0;
  (void)co_await connection.peek(*connection.client, {&first, 1});
  if (like_http(first)) judged.scheme = policy::Scheme::http;
  (void)core.recorder.decision(decision_of(connection, target, judged));
  if (!co_await core.recorder.handed_over(connection.wake)) co_return;
  const http::Refusal refusal =
      refusal_of(connection, target, judged.verdict, judged.verdict.reason);
  co_await turn_away(connection,
                     judged.scheme == policy::Scheme::http ? judged.scheme : policy::Scheme::tcp,
                     http::refusal_response(503, refusal, http::After::close));
}

asio::awaitable<void> serve_session(Core& core, base::Fd socket) {
  Connection connection(core, std::move(socket));
  const auto destination = core.destination_of(connection.client->fd());
  if (!destination) co_return;  // reset before it was accepted: there is nothing to decide about
  if (is_proxy(*destination)) co_return co_await serve_proxy(connection);
  co_await serve_target(connection, find_target(core, *destination));
}

}  // namespace gateway
