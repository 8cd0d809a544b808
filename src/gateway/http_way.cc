// The way of an HTTP session's request to its server: an address that was judged, a connection,
// TLS.
#include "gateway/http_session.h"

namespace gateway {
namespace {

Users users_of(const Handling& handling) {
  Users users;
  for (const Injection& injection : handling.injections) users.insert(injection.credential);
  return users;
}

}  // namespace

// Resolves and judges the name's addresses, once for each connection that is to be made. A kept one
// that has ended meanwhile, or that has spoken unasked, is made anew.
asio::awaitable<void> HttpSession::find_way(Asked& asked) {
  // A connection is for one set of credentials: what a server knows of it by an earlier request, by
  // its certificate most of all, decides about no other one's (N179, N180).
  const bool same = users_of(asked.handling) == users_;
  if (connection_.upstream && same && connection_.upstream->quiet()) co_return;
  drop_upstream();
  if (upstreams_ != nullptr) {
    if (const std::string* address = upstreams_->serves(users_of(asked.handling))) {
      address_ = *address;
      co_return;
    }
  }
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

asio::awaitable<std::string> HttpSession::connect(Asked& asked, const std::string& certificate) {
  if (connection_.upstream) co_return std::string();
  if (!asked.unresolved.empty()) co_return asked.unresolved;
  if (upstreams_ != nullptr) co_return co_await connect_shared(asked, certificate);
  co_return co_await dial_way(asked, certificate);
}

asio::awaitable<std::string> HttpSession::connect_shared(Asked& asked,
                                                         const std::string& certificate) {
  using Joined = H2Upstreams::Joined;
  const Joined joined = co_await upstreams_->join(connection_, users_of(asked.handling));
  if (joined.way == Joined::Way::stopped) co_return std::string("client");
  if (joined.way == Joined::Way::failed) co_return joined.problem;
  if (joined.way == Joined::Way::joined) {
    reused_ = true;
    verified_tls_ = joined.verified;
    address_ = joined.address;
    if (const auto dialled = policy::parse_address(joined.address)) connection_.dialled = *dialled;
    users_ = users_of(asked.handling);
    co_return std::string();
  }
  H2Upstreams::Turn turn(*upstreams_, joined.dial);
  if (asked.vetted.passed.empty()) {
    // The shared connection that made a look-up needless has ended meanwhile.
    co_await find_way(asked);
    if (!asked.verdict.allow) co_return asked.verdict.reason;
    if (!asked.unresolved.empty()) co_return asked.unresolved;
  }
  std::string problem = co_await dial_way(asked, certificate);
  turn.settle(connection_, address_, verified_tls_, problem);
  co_return problem;
}

asio::awaitable<std::string> HttpSession::dial_way(Asked& asked, const std::string& certificate) {
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
  if (upstreams_ != nullptr && !connection_.upstream->offer_http2()) {
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

}  // namespace gateway
