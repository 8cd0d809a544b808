// One end of a connection: a TCP socket, with TLS over it or not, or a stream of HTTP/2. Nothing
// here waits.
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
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  enum class Side { server, client };
  // TLS from here on, within the TLS that is there already, if any; call handshake() until it is
  // through. `host`: the name to ask for and to verify (Side::client), else ignored.
  [[nodiscard]] virtual base::Status start_tls(const http::TlsContext& context, Side side,
                                               std::string_view host) = 0;
  // Behind start_tls() as a client: what to show when the peer asks, see http::present(); and that
  // HTTP/2 is spoken as well.
  [[nodiscard]] virtual base::Status present(std::string_view pem) = 0;
  [[nodiscard]] virtual base::Status offer_http2() = 0;
  // And that PostgreSQL is spoken, and nothing else.
  [[nodiscard]] virtual base::Status offer_postgres() {
    return base::fail(base::Kind::unsupported, "stream", "no TLS of its own", {});
  }
  // What the peer's certificate is known by in channel bindings (RFC 5929, tls-server-end-point);
  // "" without one.
  [[nodiscard]] virtual std::string end_point() const { return {}; }
  // bytes 1: done; EAGAIN: arm_read() and arm_write(), wait
  [[nodiscard]] virtual os::Moved handshake() = 0;
  // What the handshake agreed on (ALPN): "h2", "http/1.1" or "".
  [[nodiscard]] virtual std::string_view protocol() const = 0;

  // Errors are errno values; EPROTO is a broken TLS connection. A TLS stream that ends without
  // close_notify is cut off (EPROTO), so that no one can shorten a message.
  [[nodiscard]] virtual os::Moved try_read(std::span<char> into) = 0;
  [[nodiscard]] virtual os::Moved try_write(std::string_view bytes) = 0;
  [[nodiscard]] virtual os::Moved try_write(std::string_view first, std::string_view second) = 0;
  // Makes the wake be told when the call that answered EAGAIN may go further.
  virtual void arm_read() = 0;
  virtual void arm_write() = 0;
  // The wake has not been told yet: to try again before would be in vain.
  [[nodiscard]] virtual bool read_armed() const = 0;
  [[nodiscard]] virtual bool write_armed() const = 0;

  virtual void shut_down_write() = 0;  // TLS: close_notify first
  virtual void close() = 0;            // at once, in order
  virtual void reset() = 0;            // at once, with a TCP reset
  // As close(), and where the protocol has words for it: nothing was done, another try is safe.
  virtual void turn_down() = 0;
  void detach() { wake_ = nullptr; }
  void attach(Wake& wake) { wake_ = &wake; }
  [[nodiscard]] bool attached() const { return wake_ != nullptr; }

  [[nodiscard]] virtual bool open() const = 0;
  [[nodiscard]] virtual int fd() = 0;  // -1 where there is no socket of its own
  [[nodiscard]] virtual bool tls() const = 0;
  // A read could answer without the socket: bytes that were received already.
  [[nodiscard]] virtual bool holds_bytes() const = 0;
  // Nothing has come, not even the end: fit for another request. (TLS tickets are taken in
  // passing.)
  [[nodiscard]] virtual bool quiet() = 0;
  // The peer is known to have given up, although nothing was read or written.
  [[nodiscard]] virtual bool broken() const = 0;
  // The peer has said that it did nothing of what it was asked.
  [[nodiscard]] virtual bool refused() const = 0;
  // After a handshake that failed: what is wrong with the peer's certificate, "" when that is not
  // it.
  [[nodiscard]] virtual std::string certificate_problem() const = 0;

 protected:
  Wake* wake_ = nullptr;
};

// A TCP socket, with TLS over it or not.
class SocketStream final : public Stream {
 public:
  // `wake` is told when a wait that was armed is over; it must live until detach() or close().
  SocketStream(asio::io_context& io, base::Fd fd, Wake& wake);
  ~SocketStream() override;

  [[nodiscard]] base::Status start_tls(const http::TlsContext& context, Side side,
                                       std::string_view host) override;
  [[nodiscard]] base::Status present(std::string_view pem) override;
  [[nodiscard]] base::Status offer_http2() override;
  [[nodiscard]] base::Status offer_postgres() override;
  [[nodiscard]] std::string end_point() const override;
  [[nodiscard]] os::Moved handshake() override;
  [[nodiscard]] std::string_view protocol() const override;
  [[nodiscard]] os::Moved try_read(std::span<char> into) override;
  [[nodiscard]] os::Moved try_write(std::string_view bytes) override;
  [[nodiscard]] os::Moved try_write(std::string_view first, std::string_view second) override;
  void arm_read() override { arm(read_wants_); }
  void arm_write() override { arm(write_wants_); }
  [[nodiscard]] bool read_armed() const override { return is_armed(read_wants_); }
  [[nodiscard]] bool write_armed() const override { return is_armed(write_wants_); }
  void shut_down_write() override;
  void close() override { end(); }
  void reset() override;
  void turn_down() override { end(); }
  [[nodiscard]] bool open() const override { return descriptor_.is_open(); }
  [[nodiscard]] int fd() override { return descriptor_.native_handle(); }
  [[nodiscard]] bool tls() const override { return ssl_ != nullptr; }
  [[nodiscard]] bool holds_bytes() const override;
  [[nodiscard]] bool quiet() override;
  [[nodiscard]] bool broken() const override { return false; }
  [[nodiscard]] bool refused() const override { return false; }
  [[nodiscard]] std::string certificate_problem() const override;

 private:
  enum class Wants { read, write };
  void end();
  void arm(Wants wants);
  [[nodiscard]] bool is_armed(Wants wants) const {
    return wants == Wants::read ? waits_to_read_ : waits_to_write_;
  }
  [[nodiscard]] os::Moved tls_result(int result, Wants& wants);

  asio::posix::stream_descriptor descriptor_;
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
