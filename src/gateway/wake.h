// What a connection's coroutine sleeps on: anything that concerns the connection wakes it, and it
// then tries again whatever it has to do. So nothing has to be cancelled, and time-outs are one
// flag.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <utility>

namespace gateway {

namespace asio = boost::asio;

// One sleeper. A notice that comes while nobody sleeps is kept, so none is lost; a wake without a
// cause does no harm, since the sleeper looks again.
class Wake {
 public:
  Wake() = default;
  Wake(const Wake&) = delete;
  Wake& operator=(const Wake&) = delete;

  // Resumes the sleeper before it returns; this object may be gone by then.
  void notify() {
    if (!sleeper_) {
      pending_ = true;
      return;
    }
    auto sleeper = std::exchange(sleeper_, nullptr);
    sleeper();
  }

  asio::awaitable<void> wait() {
    if (std::exchange(pending_, false)) co_return;
    auto start = [this](auto handler) { sleeper_ = std::move(handler); };
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(start,
                                                                         asio::use_awaitable);
    pending_ = false;
  }

 private:
  std::move_only_function<void()> sleeper_;
  bool pending_ = false;
};

}  // namespace gateway
