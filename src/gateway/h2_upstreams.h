// The connections that the streams of one HTTP/2 client share on their way out.
#pragma once

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gateway/core.h"
#include "gateway/h2_link.h"

namespace gateway {

// Whose secrets a connection is for: it is shared by no others (N179, N180).
using Users = std::set<std::size_t>;

// A server is asked for HTTP/2 once; while one stream dials, those with the same credentials wait
// for what comes of it. Where it speaks HTTP/1.1 each stream has a connection of its own, which is
// kept for the next.
class H2Upstreams {
 public:
  // `wake` is the owner's, who pumps.
  H2Upstreams(Core& core, Wake& wake) : core_(core), wake_(wake) {}
  ~H2Upstreams() { close(); }
  H2Upstreams(const H2Upstreams&) = delete;
  H2Upstreams& operator=(const H2Upstreams&) = delete;

  // A stream that dials, and what came of it.
  struct Dialling {
    Users users;
    bool over = false;
    std::string problem;
  };
  struct Joined {
    enum class Way { joined, dial, failed, stopped } way = Way::dial;
    std::string address;             // joined
    bool verified = false;           // joined: TLS was verified
    std::string problem;             // failed
    std::shared_ptr<Dialling> dial;  // dial: for a Turn
  };

  // Whether join() needs no address; and which one that connection goes to.
  [[nodiscard]] const std::string* serves(const Users& users);
  // Gives `connection` an upstream, or says that it has to dial. Only after the decision was
  // recorded.
  asio::awaitable<Joined> join(Connection& connection, Users users);
  // The turn to dial. Those who wait are told at its end at the latest.
  class Turn {
   public:
    Turn(H2Upstreams& upstreams, std::shared_ptr<Dialling> dialling)
        : upstreams_(upstreams), dialling_(std::move(dialling)) {}
    ~Turn() {
      if (!dialling_->over) upstreams_.end(*dialling_, "upstream");
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    // What came of it: connection.upstream is through its handshake, or `problem` says why not.
    // Where HTTP/2 was agreed on, connection.upstream becomes a stream of it.
    void settle(Connection& connection, const std::string& address, bool verified,
                std::string problem) {
      upstreams_.settle(connection, *dialling_, address, verified, std::move(problem));
    }

   private:
    H2Upstreams& upstreams_;
    std::shared_ptr<Dialling> dialling_;
  };
  // Takes back a connection of HTTP/1.1 that another request may use.
  void keep(Connection& connection, Users users, std::string address, bool verified);

  void pump();
  void close();

 private:
  struct Shared {
    Users users;
    std::string address;
    bool verified = false;
    std::uint64_t revision = 0;        // of the policy that its address was judged by
    std::shared_ptr<H2Link> link;      // HTTP/2
    std::shared_ptr<Stream> upstream;  // or idle HTTP/1.1
  };
  struct Waiter {
    const Dialling* of = nullptr;
    std::shared_ptr<Stream> client;
    Connection* connection = nullptr;
  };
  [[nodiscard]] std::list<Shared>::iterator find(const Users& users);
  [[nodiscard]] Joined take(Connection& connection, std::list<Shared>::iterator found);
  void settle(Connection& connection, Dialling& dialling, const std::string& address, bool verified,
              std::string problem);
  void end(Dialling& dialling, std::string problem);

  Core& core_;
  Wake& wake_;
  std::list<Shared> shared_;
  std::vector<std::shared_ptr<Dialling>> dialling_;
  std::vector<Waiter> waiters_;
  bool speaks_http1_ = false;
};

}  // namespace gateway
