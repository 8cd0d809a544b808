// What all connections of one gateway share: the policy, the way to the journal, the address book,
// the edges to the world, and the list of who is there.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gateway/guard.h"
#include "gateway/names.h"
#include "gateway/recorder.h"
#include "gateway/resolver.h"
#include "gateway/stream.h"
#include "gateway/wake.h"
#include "http/http.h"
#include "plan/plan.h"

namespace gateway {

class Carrying;
class Connection;
class LeaseDesk;
class Credentials;
class UpstreamProxy;

using Clock = std::chrono::steady_clock;

// Every wait has an end, every count a bound.
struct Limits {
  std::chrono::milliseconds first_bytes{10'000};  // until a new connection shows what it is
  std::chrono::milliseconds handshake{10'000};
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds lease{
      60'000};                             // the broker's answer, for which a key may be made first
  std::chrono::milliseconds head{30'000};  // a request head, once its first byte has come
  std::chrono::milliseconds idle{600'000};  // tunnels and kept connections without traffic
  std::chrono::milliseconds half_closed{60'000};
  std::chrono::milliseconds linger{2'000};  // for a refused sender to take notice
  std::chrono::milliseconds sweep{250};     // how exact the above are
  std::size_t connections = 512;
  // So many have what a fast transfer takes: queues that grow as the kernel likes, and pipes. Those
  // beyond them have little, so that all together stay far below what the host can bear.
  std::size_t roomy = 16;
  std::size_t turned_away = 32;             // beside them: over the bound, waiting to be told so
  std::chrono::milliseconds queued{1'000};  // until those over the bound are told so
  std::size_t names = 4096;
  std::size_t wildcard_names = 1024;  // of these, by wildcard rules
  http::H2Limits h2;
};

// Where a connection begins; tests lead it to servers of their own.
class Connector {
 public:
  Connector() = default;
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  virtual ~Connector() = default;
  // A socket that is connecting.
  virtual base::Result<base::Fd> start(const Passed& to, std::uint16_t port) = 0;
};
class TcpConnector final : public Connector {
 public:
  base::Result<base::Fd> start(const Passed& to, std::uint16_t port) override {
    return os::start_connect(to.at(port));
  }
};

// How a connection came to the gateway: captured on its way, or brought to the explicit proxy.
enum class Way { tcp, http, connect, socks };
[[nodiscard]] std::string to_string(Way way);

// What a rule's budgets have been used up by.
struct Used {
  std::uint64_t requests = 0;
  std::uint64_t up = 0;
  std::uint64_t down = 0;
};

// What was in force before a change: whatever was judged by it keeps its rule and its budgets.
struct PastRules {
  policy::Policy policy;
  std::vector<std::shared_ptr<Used>> used;
};

// Where an accepted socket was going, from getsockname(2); tests say it themselves.
using DestinationOf = std::function<base::Result<os::Endpoint>(int socket)>;

struct Core {
  asio::io_context& io;
  const plan::Plan& plan;
  const Limits& limits;
  Recorder& recorder;
  Names& names;
  Guard& guard;
  Resolver& resolver;
  Connector& connector;
  Credentials& credentials;
  DestinationOf destination_of = os::local_endpoint;
  http::Authority* authority = nullptr;           // where the plan terminates TLS
  const UpstreamProxy* upstream_proxy = nullptr;  // where the policy has one
  std::function<base::Result<http::TlsContext>()>
      upstream_tls;  // roots are parsed at the first use

  std::string proxy_token;  // SHA-256 in hex of what a proxy's client has to show; "": nothing

  std::list<Connection*> connections;
  std::uint64_t last_connection = 0;
  std::vector<std::shared_ptr<Used>> used = make_used(plan.policy);  // by rule of the policy
  std::deque<PastRules> past;                                        // oldest first
  std::vector<char> scratch = std::vector<char>(http::kMaxHello + 1);
  std::size_t wildcard_names = 0;  // of those in `names`, by wildcard rules
  bool names_alarmed = false;      // that they are too many was told
  bool nat64_known = false;        // the guard knows the prefixes of this network
  // Bytes that all peers of HTTP/2 together may send ahead of what is read.
  std::int64_t h2_room = std::int64_t{32} << 20;
  bool cut = false;  // cut-network: nothing is let through any more

  // Whoever comes now has to make do with little.
  [[nodiscard]] bool crowded() const { return connections.size() > limits.roomy; }
  // Of a socket that serves a connection; one that its peer has reset already stays as it is.
  void bound_queue(int socket) const {
    (void)os::bound_queue(socket, crowded() ? os::Queue::tight : os::Queue::tuned);
  }
  [[nodiscard]] const policy::Policy& policy() const { return plan.policy; }
  [[nodiscard]] static std::vector<std::shared_ptr<Used>> make_used(const policy::Policy& policy);
  [[nodiscard]] bool holds(plan::Protection protection) const {
    return plan.protections.contains(protection);
  }
};

// One connection from inside, with the one to the outside that serves it. Lives in its coroutine.
class Connection {
 public:
  Connection(Core& core, base::Fd client);
  // A stream of `parent`, which must outlive it; `client` is still to be set.
  explicit Connection(Connection& parent);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Core& core;
  std::uint64_t id;
  std::uint64_t conn;  // what the journal calls it: streams have that of their connection
  Way way = Way::tcp;
  bool waits = false;  // a proxy's client waits to hear whether its tunnel is open
  Wake wake;
  std::shared_ptr<Stream> client;
  std::shared_ptr<Stream> upstream;        // null until something is dialled
  std::optional<policy::Address> dialled;  // of `upstream`
  std::vector<std::string> credentials;    // whose secret went out on it, or on a stream of it
  std::vector<const Carrying*> carried;    // what goes on for it now

  // From now on the connection has this long, until the next call.
  void allow(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }
  // A credential's secret goes out.
  void uses(const std::string& credential);
  // Ends every wait at once; the coroutine finds stopped().
  void stop();
  // The same because the policy no longer allows what goes on.
  void revoke();
  // Why pause() answered false, in the words of egress.ended: "cut", "policy" or "idle".
  [[nodiscard]] std::string end_problem() const;
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] Clock::time_point deadline() const { return deadline_; }

  // Sleeps until something happens; false when the time is over or stop() was called.
  asio::awaitable<bool> pause();
  // These sleep as needed. ETIMEDOUT when the time is over.
  asio::awaitable<os::Moved> read(Stream& from, std::span<char> into);
  // What is there without taking it out, at least a byte or the end; plain streams only.
  asio::awaitable<os::Moved> peek(Stream& from, std::span<char> into);
  asio::awaitable<int> write(Stream& to, std::string_view bytes);  // 0 or errno
  asio::awaitable<int> handshake(Stream& stream);

 private:
  Connection* parent_ = nullptr;
  std::list<Connection*>::iterator place_;
  Clock::time_point deadline_;
  bool stopped_ = false;
  bool revoked_ = false;
};

// Something that goes on for a client as the policy allowed it: a tunnel, or one request that was
// looked into. Its connection knows of it for as long as this lives, and it is looked at again when
// the policy changes.
class Carrying {
 public:
  // `request` must outlive this.
  Carrying(Connection& connection, const policy::Request& request, policy::Treatment treatment)
      : request(request), treatment(treatment), connection_(connection) {
    connection_.carried.push_back(this);
  }
  ~Carrying() { std::erase(connection_.carried, this); }
  Carrying(const Carrying&) = delete;
  Carrying& operator=(const Carrying&) = delete;

  const policy::Request& request;
  const policy::Treatment treatment;

 private:
  Connection& connection_;
};

// Stops what has overstayed.
void sweep(Core& core);
// Stops all connections, or those on which a credential's secret went out.
void stop_all(Core& core);
void stop_users(Core& core, std::string_view credential);
// Revokes those of these that are still there when their turn comes.
void revoke_all(Core& core, const std::vector<Connection*>& connections);

}  // namespace gateway
