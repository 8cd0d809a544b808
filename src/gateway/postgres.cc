// How a session with PostgreSQL is opened: the client's start, the server's TLS, the proof of both
// sides, and then bytes.
#include "gateway/postgres.h"

#include <algorithm>

#include "gateway/credentials.h"
#include "gateway/postgres_message.h"

namespace gateway {
namespace {

using postgres::Authentication;
using postgres::Startup;

constexpr std::size_t kHead = 5;         // type and length
constexpr int kMostAsked = 2;            // for TLS and for GSS, each once
constexpr int kMostNews = 256;           // messages of a server between its word and its readiness
constexpr std::size_t kMostKept = 4096;  // sessions whose queries can be cancelled
constexpr std::size_t kNonce = 24;       // of five bits each
constexpr std::string_view kScram = "SCRAM-SHA-256";
constexpr std::string_view kScramPlus = "SCRAM-SHA-256-PLUS";

struct Message {
  char type = 0;
  std::string body;
};

class Session {
 public:
  Session(Connection& connection, PostgresStart start)
      : core_(connection.core), connection_(connection), start_(start) {
    request_ = {.scheme = policy::Scheme::tcp,
                .host = start.target.host,
                .port = start.target.port,
                .method = {}};
  }
  ~Session() { base::wipe(placeholder_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  asio::awaitable<Relayed> run();

 private:
  using Problem = asio::awaitable<std::string>;
  Problem open();
  Problem greet();
  Problem choose();
  Problem reach();
  Problem encrypt();
  Problem prove();
  Problem answer(http::Scram& scram);
  Problem await_ready();
  asio::awaitable<Relayed> cancel();
  asio::awaitable<void> turn_away(const std::string& problem);
  asio::awaitable<std::optional<std::string>> take(Stream& from, std::size_t count);
  asio::awaitable<std::optional<Message>> hear(Stream& from);
  asio::awaitable<std::optional<Authentication>> hear_word();
  Problem tell(Stream& to, std::string_view bytes);
  [[nodiscard]] bool in_the_clear() const { return request_.host.name == policy::kHostName; }
  [[nodiscard]] std::string key_of(std::string_view bytes) const {
    return request_.host.name + ":" + std::to_string(request_.port) + ":" + std::string(bytes);
  }

  Core& core_;
  Connection& connection_;
  PostgresStart start_;
  policy::Request request_;
  Startup startup_;
  std::size_t credential_ = 0;
  std::string placeholder_;
  bool verified_ = false;
  bool told_ = false;  // the client has had the server's own error
};

// --- Bytes -------------------------------------------------------------------------------------

// Not a byte more is read: what comes behind may be for TLS, or for whoever relays.
asio::awaitable<std::optional<std::string>> Session::take(Stream& from, std::size_t count) {
  std::string bytes(count, '\0');
  std::size_t have = 0;
  while (have < count) {
    const os::Moved got = co_await connection_.read(from, std::span(bytes).subspan(have));
    if (got.failed() || got.end()) co_return std::nullopt;
    have += got.bytes;
  }
  co_return bytes;
}

asio::awaitable<std::optional<Message>> Session::hear(Stream& from) {
  const auto head = co_await take(from, kHead);
  if (!head) co_return std::nullopt;
  const std::uint32_t length = postgres::length_of(std::string_view(*head).substr(1));
  if (length < 4 || length > postgres::kMostMessage) co_return std::nullopt;
  auto body = co_await take(from, length - 4);
  if (!body) co_return std::nullopt;
  co_return Message{.type = head->front(), .body = std::move(*body)};
}

Session::Problem Session::tell(Stream& to, std::string_view bytes) {
  const bool up = &to == connection_.upstream.get();
  if (co_await connection_.write(to, bytes) == 0) co_return std::string();
  co_return std::string(up ? "upstream" : "client");
}

// --- The client's start ------------------------------------------------------------------------

Session::Problem Session::greet() {
  for (int asked = 0; asked <= kMostAsked; ++asked) {
    const auto length = co_await take(*connection_.client, 4);
    if (!length) co_return std::string("client");
    const std::uint32_t size = postgres::length_of(*length);
    if (size < 8 || size > postgres::kMostStartup) co_return std::string("protocol");
    const auto body = co_await take(*connection_.client, size - 4);
    if (!body) co_return std::string("client");
    auto parsed = postgres::parse_startup(*body);
    if (!parsed) co_return std::string("protocol");
    startup_ = std::move(*parsed);
    if (startup_.kind == Startup::Kind::session || startup_.kind == Startup::Kind::cancel) {
      co_return std::string();
    }
    const bool wants_tls = startup_.kind == Startup::Kind::tls;
    if (wants_tls && connection_.client->tls()) co_return std::string("protocol");
    if (wants_tls && core_.authority != nullptr) {
      if (auto problem = co_await encrypt(); !problem.empty()) co_return problem;
    } else if (auto problem = co_await tell(*connection_.client, "N"); !problem.empty()) {
      co_return problem;
    }
  }
  co_return std::string("protocol");
}

// The answer stands before the handshake, and nothing that came in the clear counts behind it: what
// is in the socket is the handshake's (CVE-2021-23214).
Session::Problem Session::encrypt() {
  auto context = core_.authority->server_context(request_.host.name);
  if (!context) co_return std::string("no-authority");
  if (auto problem = co_await tell(*connection_.client, "S"); !problem.empty()) co_return problem;
  connection_.allow(core_.limits.handshake);
  if (!connection_.client->start_tls(*context, Stream::Side::server, "") ||
      co_await connection_.handshake(*connection_.client) != 0) {
    co_return std::string("client-handshake");
  }
  co_return std::string();
}

// By the user, and where it waits for its placeholder, by the password that the client shows.
Session::Problem Session::choose() {
  const auto credential = core_.credentials.postgres(request_, startup_.user());
  if (!credential) co_return std::string("postgres-user");
  credential_ = *credential;
  if (!core_.policy().credentials[credential_].require) co_return std::string();
  auto problem = co_await tell(*connection_.client,
                               postgres::write_authentication(Authentication::kPlain, ""));
  if (!problem.empty()) co_return problem;
  auto shown = co_await hear(*connection_.client);
  if (!shown || shown->type != 'p' || !shown->body.ends_with('\0')) co_return std::string("client");
  placeholder_ = shown->body.substr(0, shown->body.size() - 1);
  base::wipe(shown->body);
  co_return core_.credentials.stands_for(credential_, placeholder_) ? "" : "own-credential";
}

// --- The server --------------------------------------------------------------------------------

Session::Problem Session::reach() {
  const auto dialled = co_await dial(connection_, *start_.target.vetted, start_.target.port);
  if (!dialled) co_return dial_problem(dialled.error());
  if (in_the_clear()) co_return std::string();
  connection_.allow(core_.limits.handshake);
  const Startup wanted{.kind = Startup::Kind::tls, .key = {}, .parameters = {}};
  auto problem = co_await tell(*connection_.upstream, postgres::write_startup(wanted));
  if (!problem.empty()) co_return problem;
  const auto word = co_await take(*connection_.upstream, 1);
  if (!word) co_return std::string("upstream");
  auto context = core_.upstream_tls();
  if (*word != "S" || !context ||
      !connection_.upstream->start_tls(*context, Stream::Side::client, request_.host.name) ||
      !connection_.upstream->offer_postgres()) {
    co_return std::string("upstream-tls");
  }
  if (co_await connection_.handshake(*connection_.upstream) != 0) {
    const bool untrusted = !connection_.upstream->certificate_problem().empty();
    co_return std::string(untrusted ? "upstream-certificate" : "upstream-tls");
  }
  verified_ = core_.holds(plan::Protection::upstream_verify);
  co_return std::string();
}

// The server's own error goes to the client as it is; the rest is nothing that it need know.
asio::awaitable<std::optional<Authentication>> Session::hear_word() {
  auto heard = co_await hear(*connection_.upstream);
  if (heard && heard->type == 'E') {
    told_ = (co_await tell(*connection_.client, postgres::message('E', heard->body))).empty();
  }
  if (!heard || heard->type != 'R') co_return std::nullopt;
  co_return postgres::parse_authentication(heard->body);
}

// Nothing but SCRAM: with every other method the server would be given the password or something
// worth as much, or would prove nothing.
Session::Problem Session::prove() {
  auto problem = co_await tell(*connection_.upstream, postgres::write_startup(startup_));
  if (!problem.empty()) co_return problem;
  const auto word = co_await hear_word();
  const auto offered =
      word && word->kind == Authentication::kSasl ? postgres::mechanisms(word->data) : std::nullopt;
  if (!offered) co_return std::string("postgres-auth");
  const auto offers = [&](std::string_view name) {
    return std::ranges::find(*offered, name) != offered->end();
  };
  http::ChannelBinding binding;
  const std::string certificate = connection_.upstream->end_point();
  const bool bound = !certificate.empty() && offers(kScramPlus);
  if (!bound && !offers(kScram)) co_return std::string("postgres-auth");
  if (!certificate.empty()) binding.header = "y,,";
  if (bound) binding = {.header = "p=tls-server-end-point,,", .data = certificate};
  http::Scram scram("", base::random_base32(kNonce), std::move(binding));
  problem = co_await tell(*connection_.upstream,
                          postgres::write_sasl_initial(bound ? kScramPlus : kScram, scram.first()));
  if (!problem.empty()) co_return problem;
  co_return co_await answer(scram);
}

Session::Problem Session::answer(http::Scram& scram) {
  const auto first = co_await hear_word();
  if (!first || first->kind != Authentication::kSaslContinue)
    co_return std::string("postgres-auth");
  const auto challenge = scram.challenge(first->data);
  if (!challenge) co_return std::string("postgres-auth");
  auto lease = co_await core_.credentials.salted(connection_, request_, credential_, verified_,
                                                 placeholder_, *challenge);
  if (!lease) co_return std::string("broker");
  if (!lease->refusal.empty()) co_return "credential-" + lease->refusal;
  std::string last = scram.last(lease->secret);
  wipe(*lease);
  auto problem = co_await tell(*connection_.upstream, postgres::message('p', last));
  if (!problem.empty()) co_return problem;
  const auto proof = co_await hear_word();
  if (!proof || proof->kind != Authentication::kSaslFinal || !scram.proves(proof->data)) {
    co_return std::string("postgres-auth");
  }
  const auto word = co_await hear_word();
  co_return word && word->kind == Authentication::kOk ? "" : "postgres-auth";
}

// What a server says of itself until it is ready; by the key that is among it a query can be
// cancelled later, by this sandbox and no other.
Session::Problem Session::await_ready() {
  auto problem =
      co_await tell(*connection_.client, postgres::write_authentication(Authentication::kOk, ""));
  for (int news = 0; problem.empty() && news < kMostNews; ++news) {
    const auto heard = co_await hear(*connection_.upstream);
    if (!heard) co_return std::string("upstream");
    if (heard->type == 'K' && core_.postgres_keys.size() < kMostKept) {
      core_.postgres_keys.insert(key_of(heard->body));
    }
    problem = co_await tell(*connection_.client, postgres::message(heard->type, heard->body));
    if (heard->type == 'Z') co_return problem;
    if (heard->type == 'E') {
      told_ = problem.empty();
      co_return std::string("postgres-refused");
    }
  }
  co_return problem.empty() ? "upstream" : problem;
}

asio::awaitable<Relayed> Session::cancel() {
  if (!core_.postgres_keys.contains(key_of(startup_.key))) co_return Relayed{.problem = "protocol"};
  std::string problem = co_await reach();
  if (problem.empty()) {
    problem = co_await tell(*connection_.upstream, postgres::write_startup(startup_));
  }
  // The server answers nothing; the client waits for the end.
  if (problem.empty()) (void)co_await take(*connection_.upstream, 1);
  co_return Relayed{.problem = problem};
}

// --- Both --------------------------------------------------------------------------------------

asio::awaitable<void> Session::turn_away(const std::string& problem) {
  if (told_ || connection_.stopped() || problem == "client") co_return;
  const bool own = problem == "own-credential" || problem == "postgres-user";
  const std::string_view state = own                                 ? "28000"
                                 : problem == "protocol"             ? "08P01"
                                 : problem.starts_with("credential") ? "28000"
                                                                     : "08001";
  connection_.allow(core_.limits.linger);
  (void)co_await tell(*connection_.client, postgres::fatal(state, "cerco: " + problem));
  connection_.client->shut_down_write();
}

Session::Problem Session::open() {
  std::string problem = co_await choose();
  if (problem.empty()) problem = co_await reach();
  connection_.allow(core_.limits.lease);
  if (problem.empty()) problem = co_await prove();
  if (problem.empty()) problem = co_await await_ready();
  co_return problem == "postgres-auth" && told_ ? "postgres-refused" : problem;
}

asio::awaitable<Relayed> Session::run() {
  connection_.allow(core_.limits.head);
  std::string problem = co_await greet();
  const bool cancels = problem.empty() && startup_.kind == Startup::Kind::cancel;
  if (cancels) co_return co_await cancel();
  if (problem.empty()) problem = co_await open();
  if (!problem.empty()) {
    if (connection_.stopped()) problem = connection_.end_problem();
    co_await turn_away(problem);
    co_return Relayed{.problem = problem};
  }
  co_return co_await relay(connection_,
                           {.budget = start_.budget, .canaries = &core_.canaries.needles()});
}

}  // namespace

asio::awaitable<Relayed> serve_postgres(Connection& connection, PostgresStart start) {
  Session session(connection, start);
  co_return co_await session.run();
}

}  // namespace gateway
