// The channel to the broker: one answer a request, in order.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <memory>

#include "gateway/core.h"
#include "os/os.h"
#include "plan/plan.h"

namespace gateway {

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
  // Kept until its answer comes, also when the asker has gone, so that answers stay in step.
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
  std::deque<std::shared_ptr<Asked>> asked_;
  bool lost_ = false;
};

}  // namespace gateway
