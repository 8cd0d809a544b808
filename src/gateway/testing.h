// A small world for the gateway's tests: the real session code on loopback, with names,
// destinations and the journal in the test's hands.
#pragma once

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gateway/core.h"
#include "gateway/credentials.h"
#include "gateway/dns.h"
#include "gateway/servers.h"
#include "gateway/upstream_proxy.h"
#include "plan/plan.h"

namespace gateway::testing {

// Blocking sockets for the threads that play client and server. Reads give up after ten seconds, so
// that a broken test ends.
class Peer {
 public:
  Peer() = default;
  explicit Peer(base::Fd fd);
  static Peer connect(std::uint16_t port);
  void send(std::string_view bytes) const;
  [[nodiscard]] std::string read_some() const;  // "" at the end or on an error
  [[nodiscard]] std::string read_until(
      std::string_view end) const;  // what came, at least up to `end`
  [[nodiscard]] std::string read_all() const;
  [[nodiscard]] std::string read_exactly(std::size_t count) const;
  [[nodiscard]] bool was_reset() const;  // reads to the end; whether that was a reset
  void finish_sending() const;
  void close() { fd_.reset(); }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  base::Fd fd_;
};

// The same over TLS. Failures show as empty reads.
class TlsPeer {
 public:
  enum class Side { client, server };
  // `host`: the name to ask for and to verify, for a client.
  TlsPeer(const Peer& peer, const http::TlsContext& context, Side side, const std::string& host)
      : TlsPeer(peer, context, side, host, Speaks::http1) {}
  enum class Speaks { http1, http2 };
  TlsPeer(const Peer& peer, const http::TlsContext& context, Side side, const std::string& host,
          Speaks speaks);
  ~TlsPeer();
  TlsPeer(const TlsPeer&) = delete;
  TlsPeer& operator=(const TlsPeer&) = delete;
  [[nodiscard]] bool shook_hands() const { return shook_hands_; }
  [[nodiscard]] std::string_view protocol() const { return http::agreed_protocol(ssl_); }
  void send(std::string_view bytes) const;
  [[nodiscard]] std::string read_some() const;
  [[nodiscard]] std::string read_until(std::string_view end) const;
  void close() const;  // close_notify

 private:
  SSL* ssl_ = nullptr;
  bool shook_hands_ = false;
};

// A server that runs `each` for every connection, in one thread, one after another. At its end the
// connection that is served is shut down, so that no read of its waits for anyone.
class Upstream {
 public:
  explicit Upstream(std::function<void(Peer)> each);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void serve(const std::function<void(Peer)>& each, int fd);

  base::Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  int serving_ = -1;  // guarded by mutex_
  std::thread thread_;
};

struct Event {
  std::string type;
  std::string members;
  std::uint64_t ref = 0;
  std::uint64_t of = 0;
  [[nodiscard]] bool has(std::string_view text) const { return members.contains(text); }
};

class World {
 public:
  // `policy` is TOML. `without`: protections that are taken out (positive controls).
  explicit World(const std::string& policy, const std::set<plan::Protection>& without = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  plan::Plan plan;
  Limits limits;
  std::map<std::string, std::vector<std::string>> names;        // what the resolver knows
  std::set<std::string> broken;                                 // names for which nobody answers
  std::vector<std::string> asked;                               // and was asked
  std::map<std::string, std::uint16_t> listening;               // "address:port" → port on loopback
  std::vector<std::string> dialled;                             // "address:port"
  os::LocalNetworks local;                                      // what is this host's own
  std::function<plan::LeaseAnswer(plan::LeaseRequest)> broker;  // answers leases
  std::vector<plan::LeaseRequest> leases;
  std::string roots;           // PEM for upstream TLS
  std::string proxy_password;  // of network.upstream_proxy
  http::Authority* authority = nullptr;

  // Builds the gateway from the above; called by the first of the next ones.
  Core& core();
  Dns& dns();
  // A connection of a client that wants to go to a name (by its pool address) or a literal.
  Peer connect(const std::string& host, std::uint16_t port);
  // Runs `client` in a thread of its own and the gateway until it has returned and all is quiet.
  void run(const std::function<void()>& client);
  // Runs the gateway until there is no connection left.
  void settle();

  // What has come to the journal so far.
  [[nodiscard]] std::vector<Event> events();
  [[nodiscard]] std::vector<Event> decisions();
  void close_journal() { journal_ = ipc::Channel(); }

 private:
  class FakeResolver;
  class FakeConnector;
  void pump(int ms);
  void answer_leases();
  void read_journal();

  asio::io_context io_{1};
  std::unique_ptr<Recorder> recorder_;
  ipc::Channel journal_;
  ipc::Channel broker_;
  std::optional<Names> names_;
  std::optional<Guard> guard_;
  std::unique_ptr<Resolver> resolver_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Credentials> credentials_;
  std::optional<UpstreamProxy> upstream_proxy_;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Dns> dns_;
  std::vector<Event> events_;
  base::Fd listener_;
  std::uint16_t port_ = 0;
  std::map<std::uint16_t, os::Endpoint> going_to_;  // client's port → its destination
};

// Runs a coroutine of the gateway to its end.
void run_to_end(asio::io_context& io, asio::awaitable<void> work);

}  // namespace gateway::testing
