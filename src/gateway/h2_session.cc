// One coroutine moves the bytes of the client's connection and of those to the server; each stream
// has one more, which does what it would do for a connection of HTTP/1.1.
#include "gateway/h2_session.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "gateway/http_session.h"

namespace gateway {

H2Session::H2Session(Connection& connection, Target target)
    : core_(connection.core),
      connection_(connection),
      target_(std::move(target)),
      upstreams_(core_, connection.wake) {}

asio::awaitable<void> H2Session::run() {
  auto link = H2Link::make(core_, http::H2Side::server, connection_.client, connection_.wake);
  if (!link) co_return;
  client_ = std::move(*link);
  while (true) {
    const bool open = client_->pump();
    take_streams();
    take_malformed();
    upstreams_.pump();
    if (!open) break;
    // A stream that nothing happens on is over before its connection is.
    connection_.allow(core_.limits.idle * (running_ == 0 ? 1 : 2));
    if (co_await connection_.pause()) continue;
    client_->framing().go_away(http::H2Code::no_error, "");
    break;
  }
  co_await end_streams();
  client_->close();
  upstreams_.close();
  if (const std::string& problem = client_->framing().problem(); !problem.empty()) {
    record("reject", problem);
  } else if (!decided_) {
    record("allow", "no-request");
  }
  client_->detach();
  (void)co_await core_.recorder.handed_over(connection_.wake);
}

void H2Session::take_streams() {
  for (auto& stream : client_->framing().accept()) {
    // Each costs what a connection costs, and counts as one.
    if (connection_.stopped() || core_.connections.size() >= core_.limits.connections) {
      stream->abandon(http::H2Code::refused);
      client_->touch();
    } else {
      start(std::move(stream));
    }
  }
}

// A head that is none has no stream that anyone could be told on: HTTP/2 has said so already.
void H2Session::take_malformed() {
  for (unsigned left = client_->framing().take_malformed(); left > 0; --left) {
    record("reject", "h2-malformed");
  }
}

void H2Session::start(std::shared_ptr<http::H2Stream> stream) {
  decided_ = true;  // by its session
  ++running_;
  asio::co_spawn(core_.io, serve(std::move(stream)), [this](const std::exception_ptr& error) {
    if (error) std::rethrow_exception(error);
    --running_;
    connection_.wake.notify();
  });
}

asio::awaitable<void> H2Session::serve(std::shared_ptr<http::H2Stream> stream) {
  Connection connection(connection_);
  connection.client =
      std::make_shared<H2LinkStream>(client_, stream, http::H2Side::server, connection.wake);
  streams_.push_back(&connection);
  {
    HttpSession session(connection, target_, http::Leg::tls, &upstreams_);
    co_await session.run();
  }
  // A client that takes nothing, for as long as anyone may.
  if (connection.stopped() && !connection_.stopped() && stream->held()) {
    client_->framing().go_away(http::H2Code::calm, "h2-window");
  }
  std::erase(streams_, &connection);
}

asio::awaitable<void> H2Session::end_streams() {
  while (!streams_.empty()) {
    Connection* one = streams_.back();
    streams_.pop_back();
    one->stop();  // it may be over before this returns
  }
  while (running_ != 0) co_await connection_.wake.wait();
}

void H2Session::record(std::string_view verdict, const std::string& reason) {
  Decision decision;
  decision.verdict = verdict;
  decision.reason = reason;
  if (verdict != "allow") decision.kind = "protocol";
  decision.way = to_string(connection_.way);
  decision.conn = connection_.id;
  decision.host = target_.host.name;
  decision.port = target_.port;
  decision.tls = "terminated";
  decided_ = true;
  (void)core_.recorder.decision(decision);
}

}  // namespace gateway
