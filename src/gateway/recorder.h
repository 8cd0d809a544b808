// What the gateway tells the journal: decisions before anything leaves, and how each ended.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "gateway/wake.h"
#include "journal/journal.h"

namespace gateway {

// One egress.decision (contract, Journal). Empty members are left out.
struct Decision {
  std::string verdict = "deny";  // allow, deny, reject, audit
  std::string kind;  // host, port, method, path, range, credential, protocol; "" when allowed
  std::string rule;
  std::uint64_t policy = 0;  // the revision that decided; 0: the one in force
  std::string reason;
  std::string way = "tcp";
  std::uint64_t conn = 0;
  std::string host;
  std::uint16_t port = 0;
  std::string address;  // dialled, or what was refused
  std::string method;
  std::string path;
  std::string url;  // the query is redacted
  std::string tls;  // "", "opaque", "terminated"
  std::string credential;
  std::uint64_t count = 1;
  std::string fix;
  bool mixed = false;  // some of the name's addresses were refused
};

struct Ended {
  unsigned status = 0;  // HTTP; 0 for a tunnel
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
  std::uint64_t ms = 0;
  std::string problem;  // "" when it ended in order
};

[[nodiscard]] std::string members(const Decision& decision, std::uint64_t in_force);

// The channel to the journal. A decision is handed over before anything is done for it; ends and
// other news may be kept for a moment and go along with the next decision. When the journal does
// not take what it is sent within two seconds or is gone, the answer is no for ever after: refuse.
class Recorder {
 public:
  Recorder(asio::io_context& io, ipc::Channel channel) : io_(io), channel_(std::move(channel)) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Keeps a decision and returns the reference that ended() takes. It counts once handed_over().
  [[nodiscard]] std::uint64_t decision(const Decision& decision);
  // Sleeps until everything that was kept has been handed over; false when it could not be. The
  // decisions of all connections that are at work in this turn of the event loop go together: one
  // call, and the journal wakes up once. `wake` is the sleeper's own.
  asio::awaitable<bool> handed_over(Wake& wake);
  // Keeps an event and sends it with all that was kept before.
  [[nodiscard]] base::Status event(std::string_view type, std::string members);
  void ended(std::uint64_t of, const Ended& ended);
  // Sends what was kept.
  [[nodiscard]] base::Status flush();
  // The revision of the policy from now on.
  void change_policy(std::uint64_t revision) { policy_ = revision; }
  [[nodiscard]] std::uint64_t policy() const { return policy_; }
  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] bool holds() const { return !kept_.empty(); }

 private:
  struct Waiting {
    Wake* wake = nullptr;
    bool over = false;
  };
  void keep(const journal::Draft& draft) { kept_.push_back(base::encode(draft)); }
  void flush_for_all();

  asio::io_context& io_;
  ipc::Channel channel_;
  std::uint64_t policy_ = 1;
  std::vector<std::string> kept_;
  std::vector<Waiting*> waiting_;
  std::uint64_t refs_ = 0;
  bool lost_ = false;
};

}  // namespace gateway
