// One end of a connection: a TCP socket, with TLS over it or not. Nothing here waits.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>
#include <span>
#include <string_view>

#include "base/base.h"
#include "gateway/wake.h"
#include "http/http.h"
#include "os/os.h"

namespace gateway {

// Held by shared_ptr, since the reactor keeps it until its last wait has answered.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // `wake` is told when a wait that was armed is over; it must live until detach() or close().
  Stream(asio::io_context& io, base::Fd fd, Wake& wake);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  enum class Side { server, client };
  // TLS from here on, within the TLS that is there already, if any; call handshake() until it is
  // through. `host`: the name to ask for and to verify (Side::client), else ignored.
  [[nodiscard]] base::Status start_tls(const http::TlsContext& context, Side side,
                                       std::string_view host);
  // Behind start_tls() as a client: what to show when the peer asks, see http::present().
  [[nodiscard]] base::Status present(std::string_view pem);
  [[nodiscard]] os::Moved handshake();  // bytes 1: done; EAGAIN: arm_read() and arm_write(), wait

  // Errors are errno values; EPROTO is a broken TLS connection. A TLS stream that ends without
  // close_notify is cut off (EPROTO), so that no one can shorten a message.
  [[nodiscard]] os::Moved try_read(std::span<char> into);
  [[nodiscard]] os::Moved try_write(std::string_view bytes);
  [[nodiscard]] os::Moved try_write(std::string_view first, std::string_view second);
  // Makes the wake be told when the call that answered EAGAIN may go further.
  void arm_read();
  void arm_write();
  // The wake has not been told yet: to try again before would be in vain.
  [[nodiscard]] bool read_armed() const { return is_armed(read_wants_); }
  [[nodiscard]] bool write_armed() const { return is_armed(write_wants_); }

  void shut_down_write();  // TLS: close_notify first
  void close();            // at once, in order
  void reset();            // at once, with a TCP reset
  void detach() { wake_ = nullptr; }
  [[nodiscard]] bool attached() const { return wake_ != nullptr; }

  [[nodiscard]] bool open() const { return descriptor_.is_open(); }
  [[nodiscard]] int fd() { return descriptor_.native_handle(); }
  [[nodiscard]] bool tls() const { return ssl_ != nullptr; }
  // A read could answer without the socket: TLS bytes that were received already.
  [[nodiscard]] bool holds_bytes() const;
  // Nothing has come, not even the end: fit for another request. (TLS tickets are taken in
  // passing.)
  [[nodiscard]] bool quiet();
  // After a handshake that failed: what is wrong with the peer's certificate, "" when that is not
  // it.
  [[nodiscard]] std::string certificate_problem() const;

 private:
  enum class Wants { read, write };
  void arm(Wants wants);
  [[nodiscard]] bool is_armed(Wants wants) const {
    return wants == Wants::read ? waits_to_read_ : waits_to_write_;
  }
  [[nodiscard]] os::Moved tls_result(int result, Wants& wants);

  asio::posix::stream_descriptor descriptor_;
  Wake* wake_;
  struct FreeSsl {
    void operator()(SSL* ssl) const;
  };
  [[nodiscard]] bool attach_tls();
  std::unique_ptr<SSL, FreeSsl> outer_;  // with a proxy, around ssl_; outlives it
  std::unique_ptr<SSL, FreeSsl> ssl_;
  Wants read_wants_ = Wants::read;
  Wants write_wants_ = Wants::write;
  bool waits_to_read_ = false;
  bool waits_to_write_ = false;
};

}  // namespace gateway
