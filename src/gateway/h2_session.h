// An HTTP/2 connection of a client: each of its streams is an HTTP session of its own.
#pragma once

#include <memory>
#include <vector>

#include "gateway/core.h"
#include "gateway/h2_link.h"
#include "gateway/h2_upstreams.h"
#include "gateway/target.h"

namespace gateway {

class H2Session {
 public:
  // `connection.client` is through its handshake and has agreed on "h2".
  H2Session(Connection& connection, Target target);
  H2Session(const H2Session&) = delete;
  H2Session& operator=(const H2Session&) = delete;

  // Until the connection and all its streams are over. At least one decision is recorded.
  asio::awaitable<void> run();

 private:
  asio::awaitable<void> serve(std::shared_ptr<http::H2Stream> stream);
  void take_streams();
  void take_malformed();
  void start(std::shared_ptr<http::H2Stream> stream);
  asio::awaitable<void> end_streams();
  void record(std::string_view verdict, const std::string& reason);

  Core& core_;
  Connection& connection_;
  Target target_;
  std::shared_ptr<H2Link> client_;
  H2Upstreams upstreams_;
  std::vector<Connection*> streams_;  // at work
  std::size_t running_ = 0;           // coroutines that are not over yet
  bool decided_ = false;
};

}  // namespace gateway
