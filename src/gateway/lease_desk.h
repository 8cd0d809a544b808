// The channel to the broker: one answer a request, in any order.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>

#include "gateway/core.h"
#include "os/os.h"
#include "plan/plan.h"

namespace gateway {

// Of what a secret is in.
void wipe(plan::LeaseAnswer& answer);

class LeaseDesk {
 public:
  // `channel` becomes non-blocking.
  [[nodiscard]] static base::Result<std::unique_ptr<LeaseDesk>> make(asio::io_context& io,
                                                                     ipc::Channel channel);
  LeaseDesk(const LeaseDesk&) = delete;
  LeaseDesk& operator=(const LeaseDesk&) = delete;

  // An answer may be a refusal. An error: the broker is gone, or did not answer in the connection's
  // time. The answer's strings hold a secret: wipe them.
  asio::awaitable<base::Result<plan::LeaseAnswer>> ask(Connection& connection,
                                                       plan::LeaseRequest request);

 private:
  // Kept until its answer comes, also when the asker has gone: an answer to nothing is a fault.
  struct Asked {
    Connection* who = nullptr;
    bool done = false;
    bool lost = false;
    plan::LeaseAnswer answer;
  };
  LeaseDesk(asio::io_context& io, ipc::Channel channel);
  void arm();
  void receive();
  void lose();

  ipc::Channel channel_;
  asio::posix::stream_descriptor descriptor_;
  os::PacketReader reader_;
  std::map<std::uint64_t, std::shared_ptr<Asked>> asked_;
  std::uint64_t last_ = 0;
  bool lost_ = false;
};

}  // namespace gateway
