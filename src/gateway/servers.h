// The capture sockets at work: connections become sessions, questions become answers.
#pragma once

#include <memory>
#include <vector>

#include "gateway/core.h"
#include "gateway/dns.h"
#include "gateway/refused_log.h"

namespace gateway {

// In the order of plan::GatewayServe.
struct CaptureSockets {
  base::Fd tcp4, tcp6;
  base::Fd dns4, dns6;
  base::Fd dns_tcp4, dns_tcp6;
  base::Fd refused;
};

// Loops over the capture sockets until close(). `busy` is called whenever something has begun that
// time must be kept for.
class Servers {
 public:
  Servers(Core& core, Dns& dns, RefusedLog& refused, std::function<void()> busy)
      : core_(core), dns_(dns), refused_(refused), busy_(std::move(busy)) {}
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // A descriptor that is not open is left out.
  [[nodiscard]] base::Status open(CaptureSockets sockets);
  // The explicit proxy alone, on listening sockets.
  [[nodiscard]] base::Status open_proxy(std::vector<base::Fd> sockets);
  void close();
  // What the log still holds.
  void drain_log();

 private:
  struct Door;
  enum class Kind { connections, questions, question_streams, log, proxy };
  [[nodiscard]] base::Status add(base::Fd socket, Kind kind);
  asio::awaitable<void> run(std::shared_ptr<Door> door);
  // False: nothing more can be taken now for want of descriptors or room.
  [[nodiscard]] bool take(Door& door);
  [[nodiscard]] bool take_connections(Door& door);
  [[nodiscard]] bool over_bound();
  void take_questions(Door& door);

  Core& core_;
  Dns& dns_;
  RefusedLog& refused_;
  std::function<void()> busy_;
  std::vector<std::shared_ptr<Door>> doors_;
  std::optional<Clock::time_point> full_since_;
};

}  // namespace gateway
