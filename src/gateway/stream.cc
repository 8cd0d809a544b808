// Plain and TLS streams over one non-blocking socket. OpenSSL reads and writes the socket itself,
// so a byte is copied once.
#include "gateway/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>

namespace gateway {
namespace {

constexpr std::size_t kMostTls = std::size_t{1} << 30;  // OpenSSL counts in int

}  // namespace

void SocketStream::FreeSsl::operator()(SSL* ssl) const {
  SSL_free(ssl);
}

SocketStream::SocketStream(asio::io_context& io, base::Fd fd, Wake& wake)
    : descriptor_(io, fd.release()) {
  attach(wake);
  // Both can fail on a socket that its peer has reset; the next read says so.
  (void)os::set_no_delay(this->fd());
}

SocketStream::~SocketStream() {
  end();
}

base::Status SocketStream::start_tls(const http::TlsContext& context, Side side,
                                     std::string_view host) {
  outer_ = std::move(ssl_);
  ssl_.reset(SSL_new(context.get()));
  if (!ssl_ || !attach_tls()) {
    ERR_clear_error();
    return base::fail(base::Kind::system, "TLS", "out of memory", {});
  }
  // One recv(2) a record where it would be two.
  SSL_set_read_ahead(ssl_.get(), 1);
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                               SSL_MODE_RELEASE_BUFFERS);
  if (side == Side::server) {
    SSL_set_accept_state(ssl_.get());
    return {};
  }
  SSL_set_connect_state(ssl_.get());
  return http::expect_peer(ssl_.get(), host);
}

// To the socket, or to the TLS connection with a proxy that carries this one.
bool SocketStream::attach_tls() {
  if (!outer_) return SSL_set_fd(ssl_.get(), fd()) == 1;
  BIO* carrier = BIO_new(BIO_f_ssl());
  if (carrier == nullptr) return false;
  BIO_set_ssl(carrier, outer_.get(), BIO_NOCLOSE);
  SSL_set_bio(ssl_.get(), carrier, carrier);
  return true;
}

base::Status SocketStream::present(std::string_view pem) {
  return http::present(ssl_.get(), pem);
}

base::Status SocketStream::offer_http2() {
  return http::offer_http2(ssl_.get());
}

base::Status SocketStream::offer_postgres() {
  return http::offer_postgres(ssl_.get());
}

std::string SocketStream::end_point() const {
  return ssl_ ? http::end_point(ssl_.get()) : std::string();
}

std::string_view SocketStream::protocol() const {
  return ssl_ ? http::agreed_protocol(ssl_.get()) : std::string_view{};
}

os::Moved SocketStream::tls_result(int result, Wants& wants) {
  const int error = SSL_get_error(ssl_.get(), result);
  const int number = errno;
  ERR_clear_error();
  switch (error) {
    case SSL_ERROR_WANT_READ:
      wants = Wants::read;
      return {.error = EAGAIN};
    case SSL_ERROR_WANT_WRITE:
      wants = Wants::write;
      return {.error = EAGAIN};
    case SSL_ERROR_ZERO_RETURN:
      return {};
    case SSL_ERROR_SYSCALL:
      return {.error = number != 0 ? number : EPROTO};
    default:
      return {.error = EPROTO};
  }
}

os::Moved SocketStream::handshake() {
  if (!open()) return {.error = ECONNABORTED};
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    read_wants_ = Wants::read;
    write_wants_ = Wants::write;
    return {.bytes = 1};
  }
  os::Moved moved = tls_result(result, read_wants_);
  write_wants_ = read_wants_;
  if (moved.end()) moved.error = EPROTO;
  return moved;
}

os::Moved SocketStream::try_read(std::span<char> into) {
  if (!open()) return {.error = ECONNABORTED};
  if (!ssl_) return os::receive(fd(), into);
  errno = 0;
  std::size_t count = 0;
  const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &count);
  if (result == 1) return {.bytes = count};
  return tls_result(result, read_wants_);
}

os::Moved SocketStream::try_write(std::string_view bytes) {
  if (!open()) return {.error = ECONNABORTED};
  if (bytes.empty()) return {};
  if (!ssl_) return os::send(fd(), bytes);
  errno = 0;
  std::size_t count = 0;
  const int result =
      SSL_write_ex(ssl_.get(), bytes.data(), std::min(bytes.size(), kMostTls), &count);
  if (result == 1) return {.bytes = count};
  os::Moved moved = tls_result(result, write_wants_);
  if (moved.end()) moved.error = EPIPE;
  return moved;
}

os::Moved SocketStream::try_write(std::string_view first, std::string_view second) {
  if (!open()) return {.error = ECONNABORTED};
  if (ssl_ || second.empty()) return try_write(first.empty() ? second : first);
  if (first.empty()) return try_write(second);
  return os::send(fd(), first, second);
}

void SocketStream::arm(Wants wants) {
  bool& armed = wants == Wants::read ? waits_to_read_ : waits_to_write_;
  if (armed || !open()) return;
  armed = true;
  const auto what = wants == Wants::read ? asio::posix::stream_descriptor::wait_read
                                         : asio::posix::stream_descriptor::wait_write;
  descriptor_.async_wait(what, [self = std::static_pointer_cast<SocketStream>(shared_from_this()),
                                wants](const boost::system::error_code&) {
    (wants == Wants::read ? self->waits_to_read_ : self->waits_to_write_) = false;
    if (self->wake_ != nullptr) self->wake_->notify();
  });
}

void SocketStream::shut_down_write() {
  if (!open()) return;
  if (ssl_) {
    // The answer to close_notify is not awaited; a failure means that the peer is gone already.
    if (SSL_is_init_finished(ssl_.get()) != 0) SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  (void)os::shut_down_write(fd());
}

void SocketStream::end() {
  if (!open()) return;
  if (ssl_ && SSL_is_init_finished(ssl_.get()) != 0) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  boost::system::error_code ignored;  // the descriptor is gone whatever close(2) says
  descriptor_.close(ignored);
}

void SocketStream::reset() {
  if (!open()) return;
  (void)os::reset_at_close(fd());
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

bool SocketStream::holds_bytes() const {
  const auto pending = [](const auto& ssl) { return ssl && SSL_has_pending(ssl.get()) != 0; };
  return pending(ssl_) || pending(outer_);
}

bool SocketStream::quiet() {
  char byte = 0;
  if (!open()) return false;
  const os::Moved seen = ssl_ ? try_read({&byte, 1}) : os::peek(fd(), {&byte, 1});
  return seen.error == EAGAIN;
}

std::string SocketStream::certificate_problem() const {
  return ssl_ ? http::certificate_problem(ssl_.get()) : std::string();
}

}  // namespace gateway
