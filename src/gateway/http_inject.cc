// What an HTTP session does for credentials: looks into a body for its place, and puts secrets in.
#include "gateway/http_session.h"

namespace gateway {
namespace {

constexpr std::size_t kRead = std::size_t{16} * 1024;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

// The body goes back to where it came from, whole and with its length, so that whatever follows
// finds a request like any other.
asio::awaitable<bool> HttpSession::look_into_body(Asked& asked) {
  http::BodyReader body(asked.head.body, 400, http::Trailers::known);
  if (std::exchange(asked.head.expect_continue, false) &&
      co_await connection_.write(*connection_.client, kContinue) != 0) {
    co_return false;
  }
  std::string content;
  std::string problem;
  connection_.allow(core_.limits.head);
  while (!body.done() && problem.empty()) {
    if (from_client_.empty()) {
      const os::Moved got =
          co_await connection_.read(*connection_.client, from_client_.make_room(kRead));
      if (got.failed() || got.end()) co_return false;
      from_client_.added(got.bytes);
    }
    const auto part = body.read(from_client_.view());
    if (!part) {
      problem = part.error().reason;
      break;
    }
    content += part->content;
    from_client_.consume(part->used);
    if (content.size() > kMostFieldBody) problem = "credential-body-size";
  }
  if (problem.empty()) {
    from_client_.put_front(content);
    asked.head.body = {.framing = http::Framing::length, .length = content.size()};
    core_.credentials.handle_body(asked.head, asked.request, content, asked.handling);
    problem = asked.handling.reason;
  } else {
    asked.handling.reason = problem;
    asked.head.keep_alive = false;  // where the next request starts is not known any more
  }
  if (problem.empty()) co_return true;
  asked.verdict.allow = false;
  asked.verdict.audit = false;
  asked.verdict.reason = problem;
  asked.verdict.fix.clear();
  co_return true;
}

asio::awaitable<HttpSession::Next> HttpSession::refuse_lease(Asked& asked, std::string reason) {
  asked.verdict.allow = false;
  asked.verdict.audit = false;
  asked.verdict.reason = reason;
  asked.handling.reason = reason;
  if (!co_await record(asked)) co_return Next::end;
  co_return co_await refuse(asked, 403, std::move(reason));
}

// One lease a request, also on a connection that is kept, so that uses are counted and an end is
// noticed.
asio::awaitable<std::optional<HttpSession::Next>> HttpSession::lease_certificate(
    Asked& asked, std::string& certificate) {
  const auto credential = core_.credentials.identity(asked.handling);
  if (!credential) co_return std::nullopt;
  if (leg_ != http::Leg::tls) co_return co_await refuse_lease(asked, "credential-tls");
  auto answer = co_await core_.credentials.certificate(
      connection_, asked.request, *credential, core_.holds(plan::Protection::upstream_verify));
  if (connection_.stopped()) co_return Next::end;
  if (!answer) {
    ended(asked, 502, {.problem = "broker"});
    co_return co_await refuse(asked, 502, "broker");
  }
  if (!answer->refusal.empty()) {
    co_return co_await refuse_lease(asked, "credential-" + answer->refusal);
  }
  certificate = answer->secret;
  base::wipe(answer->secret);
  co_return std::nullopt;
}

asio::awaitable<std::optional<HttpSession::Next>> HttpSession::inject(Asked& asked) {
  if (asked.handling.injections.empty()) co_return std::nullopt;
  std::string content;
  if (!asked.handling.bodies.empty()) {
    content = from_client_.view().substr(0, asked.head.body.length);
  }
  const std::size_t before = content.size();
  const auto refused = co_await core_.credentials.inject(
      connection_, asked.head, content, asked.request, asked.handling, verified_tls_);
  if (connection_.stopped() || !refused || !refused->empty()) base::wipe(content);
  if (connection_.stopped()) co_return Next::end;
  if (!refused) {
    ended(asked, 502, {.problem = "broker"});
    co_return co_await refuse(asked, 502, "broker");
  }
  if (!refused->empty()) co_return co_await refuse_lease(asked, *refused);
  if (!asked.handling.bodies.empty()) {
    from_client_.consume(before);
    from_client_.put_front(content);
    asked.head.body.length = content.size();
    base::wipe(content);
  }
  co_return std::nullopt;
}

}  // namespace gateway
