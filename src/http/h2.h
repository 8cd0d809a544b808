// One HTTP/2 connection as bytes: what came is fed, what is to go is taken. No sockets, no clock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "http/h2_flood.h"
#include "http/h2_stream.h"

struct nghttp2_session;

namespace http {

inline constexpr std::size_t kMaxH2Block = kMaxHead;     // bytes of a header block as sent
inline constexpr std::size_t kMaxH2List = 4 * kMaxHead;  // and unpacked; over kMaxHead: 431

struct H2Limits {
  std::uint32_t streams = 100;
  std::int32_t stream_window = 256 * 1024;       // bytes that the peer may send ahead
  std::int32_t connection_window = 1024 * 1024;  // and on all streams together
  // Resets, and streams that were malformed; frames that carry nothing.
  std::uint64_t resets = 200;
  std::uint64_t resets_each_second = 100;
  std::uint64_t control = 1000;
  std::uint64_t control_each_second = 500;
};

// A peer that goes over a limit is sent away with GOAWAY, ENHANCE_YOUR_CALM. Extended CONNECT is
// never advertised, nothing is pushed, and what a client side has sent is wiped when it is freed
// and never enters a table of HPACK.
class H2Connection {
 public:
  [[nodiscard]] static base::Result<std::unique_ptr<H2Connection>> make(H2Side side,
                                                                        const H2Limits& limits);
  ~H2Connection();
  H2Connection(const H2Connection&) = delete;
  H2Connection& operator=(const H2Connection&) = delete;

  // Bytes of the peer, at `now_ms` of a clock that never goes back.
  void feed(std::string_view bytes, std::uint64_t now_ms);
  // What is to be sent, up to 16 KiB and a frame; empty when there is nothing. Valid until the next
  // call of anything here.
  [[nodiscard]] std::string_view output();

  // A server's: streams whose request head has come since the last call.
  [[nodiscard]] std::vector<std::shared_ptr<H2Stream>> accept();
  // A server's: streams that were malformed since the last call.
  [[nodiscard]] unsigned take_malformed();
  // A client's: a stream for one more request; takes_more() must hold.
  [[nodiscard]] std::shared_ptr<H2Stream> open();
  [[nodiscard]] bool takes_more() const;

  // Sends the peer away; what is under way ends.
  void go_away(H2Code code, std::string problem);
  // The socket is gone: streams that did not come to their end are broken.
  void drop();
  // Nothing is to be read or written any more.
  [[nodiscard]] bool over() const;
  // Why the peer was sent away: "h2-head", "h2-resets", "h2-control", "h2-protocol", or what
  // go_away() was told; "" when it was not.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }

 private:
  friend class H2Stream;
  struct Callbacks;
  H2Connection(H2Side side, const H2Limits& limits);
  [[nodiscard]] base::Status start(const H2Limits& limits);
  [[nodiscard]] std::shared_ptr<H2Stream> find(std::int32_t id) const;
  void count_broken(unsigned requests);

  // What streams ask for.
  [[nodiscard]] bool submit(H2Stream& stream, const H2Head& head);
  void resume(H2Stream& stream);
  void consume(const H2Stream& stream, std::size_t bytes);
  void cut(const H2Stream& stream, H2Code code);
  [[nodiscard]] bool window_closed(const H2Stream& stream) const;

  H2Side side_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::shared_ptr<H2Stream>> streams_;
  std::vector<std::shared_ptr<H2Stream>> opening_;  // of a client, until their head is written
  std::vector<std::shared_ptr<H2Stream>> accepted_;
  unsigned malformed_ = 0;
  H2Allowance resets_;
  H2Allowance control_;
  std::size_t block_ = 0;  // of the header block that is coming in: as sent
  std::size_t list_ = 0;   // and unpacked
  std::string output_;
  std::string problem_;
  bool dropped_ = false;
};

}  // namespace http
