// What an HTTP session says to the journal and, where it refuses, to the client.
#include "gateway/http_session.h"

namespace gateway {
namespace {

constexpr std::size_t kRead = std::size_t{16} * 1024;
// A refused body up to this size is read and forgotten, so that the connection can be kept.
constexpr std::uint64_t kMostDrained = std::uint64_t{1} << 20;

}  // namespace

// --- To the journal ----------------------------------------------------------------------------

Decision HttpSession::decision(const Asked& asked) const {
  Decision decision;
  decision.way = to_string(connection_.way);
  decision.conn = connection_.conn;
  decision.host = target_.host.name;
  decision.port = target_.port;
  decision.tls = leg_ == http::Leg::tls ? "terminated" : "";
  decision.method = asked.head.method;
  decision.path = asked.request.path;
  if (!asked.head.method.empty()) {
    decision.url = leg_ == http::Leg::tls ? "https://" : "http://";
    decision.url += target_.host.name;
    if (target_.port != usual_port()) decision.url += ":" + std::to_string(target_.port);
    decision.url += http::path_of(asked.head);
    if (asked.head.target.find('?') != std::string::npos) decision.url += "?[redacted]";
  }
  return decision;
}

asio::awaitable<bool> HttpSession::record(Asked& asked) {
  Decision decision = this->decision(asked);
  const policy::Verdict& verdict = asked.verdict;
  decision.rule = verdict.rule;
  decision.policy = verdict.revision;
  decision.reason = verdict.reason;
  decision.credential = asked.handling.credential;
  decision.address = address_;
  decision.mixed = mixed_ && verdict.allow;
  decision.verdict = verdict_word(verdict);
  if (decision.verdict != "allow") {
    const bool range = !asked.vetted.reason.empty() && asked.vetted.passed.empty();
    decision.kind = range                                     ? "range"
                    : verdict.reason == asked.handling.reason ? "credential"
                                                              : kind_of(verdict.reason);
    decision.fix = verdict.fix;
  }
  decided_ = true;
  asked.ref = core_.recorder.decision(decision);
  if (asked.handling.misuse && !record_misuse(asked)) co_return false;
  co_return co_await core_.recorder.handed_over(connection_.wake);
}

bool HttpSession::record_misuse(const Asked& asked) {
  base::JsonObject object;
  object.add("credential", asked.handling.credential).add("reason", asked.verdict.reason);
  object.add("where", asked.handling.where).add("host", target_.host.name);
  object.add("port", target_.port).add("method", asked.head.method);
  object.add("path", journal::cut_text(asked.request.path));
  return core_.recorder.event("credential.refused", object.members()).has_value();
}

base::Status HttpSession::record_canary(const Asked& asked, std::size_t needle) {
  return record_sight(core_.recorder, core_.canaries.at(needle, "body"),
                      {.host = target_.host.name,
                       .port = target_.port,
                       .method = asked.head.method,
                       .path = asked.request.path});
}

// --- To the client -----------------------------------------------------------------------------

asio::awaitable<HttpSession::Next> HttpSession::reject(http::Rejection rejection) {
  Decision decision = this->decision({});
  decision.verdict = "reject";
  decision.kind = "protocol";
  decision.reason = rejection.reason;
  decided_ = true;
  (void)core_.recorder.decision(decision);
  if (!co_await core_.recorder.handed_over(connection_.wake)) co_return Next::end;
  connection_.allow(core_.limits.linger);
  const std::string answer = http::rejection_response(rejection);
  if (co_await connection_.write(*connection_.client, answer) == 0) co_await linger();
  co_return Next::end;
}

asio::awaitable<HttpSession::Next> HttpSession::refuse(Asked& asked, unsigned status,
                                                       std::string reason) {
  // A sender that waits for 100 (Continue) may send its body or not: nobody can tell where the next
  // request starts.
  const bool keep =
      upstreams_ == nullptr && asked.head.keep_alive && asked.head.minor == 1 &&
      !asked.head.expect_continue &&
      (asked.head.body.framing != http::Framing::length || asked.head.body.length <= kMostDrained);
  const http::Refusal refusal{.reason = std::move(reason),
                              .rule = asked.verdict.rule,
                              .host = target_.host.name,
                              .port = target_.port,
                              .method = asked.head.method,
                              .path = asked.request.path,
                              .fix = asked.verdict.fix};
  connection_.allow(core_.limits.head);
  const std::string answer =
      http::refusal_response(status, refusal, keep ? http::After::keep : http::After::close);
  if (co_await connection_.write(*connection_.client, answer) != 0) co_return Next::end;
  if (keep && co_await drain_body(asked)) co_return Next::again;
  co_await linger();
  co_return Next::end;
}

asio::awaitable<bool> HttpSession::drain_body(const Asked& asked) {
  http::BodyReader body(asked.head.body, 400, http::Trailers::known);
  http::BodyScan scan(core_.canaries.needles());
  std::uint64_t drained = 0;
  while (!body.done()) {
    if (from_client_.empty()) {
      const os::Moved got =
          co_await connection_.read(*connection_.client, from_client_.make_room(kRead));
      if (got.failed() || got.end()) co_return false;
      from_client_.added(got.bytes);
      drained += got.bytes;
      if (drained > kMostDrained + kRead) co_return false;
    }
    const auto part = body.read(from_client_.view());
    if (!part) co_return false;
    const auto seen = scan.scan(part->content);
    if (!seen.empty() && !record_canary(asked, seen.front())) co_return false;
    from_client_.consume(part->used);
  }
  co_return true;
}

// Lets the peer read our last words before the socket goes: bytes that nobody reads would make the
// kernel send a reset, which overtakes them.
asio::awaitable<void> HttpSession::linger() {
  connection_.client->shut_down_write();
  connection_.allow(core_.limits.linger);
  std::uint64_t drained = 0;
  while (drained < kMostDrained * 4) {
    const os::Moved got = co_await connection_.read(*connection_.client, core_.scratch);
    if (got.failed() || got.end()) co_return;
    drained += got.bytes;
  }
}

}  // namespace gateway
