// The HTTP requests of one connection: each is parsed, decided, recorded and only then carried out.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "gateway/buffer.h"
#include "gateway/core.h"
#include "gateway/credentials.h"
#include "gateway/exchange.h"
#include "gateway/h2_upstreams.h"
#include "gateway/target.h"
#include "http/http.h"

namespace gateway {

class HttpSession {
 public:
  // Leg::plain: captured plain HTTP; Leg::tls: inside TLS that ends here; Leg::proxy: each request
  // says itself where it goes, and `target` is where none has gone yet. `upstreams`: of a stream of
  // HTTP/2, which is for one request, what it shares with others; else nullptr.
  HttpSession(Connection& connection, Target target, http::Leg leg, H2Upstreams* upstreams);
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Until the connection is over. At least one decision is recorded.
  asio::awaitable<void> run();
  // Of a proxy: where the CONNECT that ended the session wants to go; what came behind it is still
  // in the socket.
  [[nodiscard]] const std::optional<Target>& tunnel() const { return tunnel_; }

 private:
  enum class Next { again, end };
  // One request with all that was decided about it.
  struct Asked {
    http::RequestHead head;
    std::vector<http::Field> dropped;  // that came with it and do not go on
    policy::Request request;
    policy::Verdict verdict;
    Handling handling;
    Vetted vetted;           // when a connection has to be made
    std::string unresolved;  // why there is no address to dial
    std::uint64_t ref = 0;   // of its decision
    Clock::time_point since;
  };

  asio::awaitable<Next> serve_one();
  // The length of the head that from_client_ starts with; nullopt: the connection is over.
  asio::awaitable<std::optional<http::Parsed<std::size_t>>> read_head();
  asio::awaitable<os::Moved> read_some_head(std::size_t& seen);
  [[nodiscard]] std::optional<http::Rejection> go_to(const http::RequestHead& head,
                                                     const Target& before);
  asio::awaitable<Next> reject(http::Rejection rejection);
  [[nodiscard]] std::optional<http::Rejection> admit(std::size_t length, Asked& asked);
  void write_host_as_judged(http::RequestHead& head) const;
  void decide(Asked& asked);
  // Reads the body and lets the credentials look into it; false: the client is gone.
  asio::awaitable<bool> look_into_body(Asked& asked);
  // Puts the secrets in. What is to become of the request: nothing where it may go.
  asio::awaitable<std::optional<Next>> inject(Asked& asked);
  [[nodiscard]] std::string budget_problem(const Asked& asked) const;
  void count(const Asked& asked, int requests);
  asio::awaitable<void> find_way(Asked& asked);
  asio::awaitable<bool> record(Asked& asked);
  [[nodiscard]] bool record_misuse(const Asked& asked);
  [[nodiscard]] base::Status record_canary(const Asked& asked, std::size_t needle);
  asio::awaitable<Next> refuse(Asked& asked, unsigned status, std::string reason);
  asio::awaitable<Next> carry_out(Asked& asked);
  // "" or why there is no connection to the upstream, which shows `certificate` where it asks.
  asio::awaitable<std::string> connect(Asked& asked, const std::string& certificate);
  asio::awaitable<std::string> shake_hands(const std::string& certificate);
  asio::awaitable<std::string> dial_way(Asked& asked, const std::string& certificate);
  // As connect(), where the connection may be shared.
  asio::awaitable<std::string> connect_shared(Asked& asked, const std::string& certificate);
  // Gets the certificate that a new connection is to show. What is to become of the request:
  // nothing where it may go.
  asio::awaitable<std::optional<Next>> lease_certificate(Asked& asked, std::string& certificate);
  asio::awaitable<Next> refuse_lease(Asked& asked, std::string reason);
  asio::awaitable<Next> after(Asked& asked, ExchangeEnd end);
  asio::awaitable<Next> upgrade(Asked& asked);
  asio::awaitable<bool> drain_body(const Asked& asked);
  asio::awaitable<void> linger();
  void drop_upstream();
  void ended(const Asked& asked, unsigned status, const ExchangeEnd& end);
  [[nodiscard]] Decision decision(const Asked& asked) const;
  [[nodiscard]] std::uint16_t usual_port() const { return leg_ == http::Leg::tls ? 443 : 80; }
  [[nodiscard]] bool stands_for_target(const http::RequestHead& head) const;

  Core& core_;
  Connection& connection_;
  Target target_;
  std::optional<Target> tunnel_;
  http::Leg leg_;
  http::Admission admission_;
  Buffer from_client_;
  Buffer from_upstream_;
  std::string address_;  // of the upstream, as text
  bool verified_tls_ = false;
  H2Upstreams* upstreams_;
  Users users_;  // whose secrets the upstream connection is for
  bool mixed_ = false;
  bool reused_ = false;   // the upstream has answered before
  bool decided_ = false;  // some decision was recorded
};

}  // namespace gateway
