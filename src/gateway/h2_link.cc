// Pumping, and how streams wake their sessions: never from within the framing, which must not be
// entered again while it calls back.
#include "gateway/h2_link.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>

namespace gateway {
namespace {

constexpr int kTurn = 8;                          // reads before others have their turn
constexpr std::int32_t kLeastWindow = 64 * 1024;  // less cannot be asked for (RFC 9113 section 6.9)

std::uint64_t now_ms() {
  const auto now = Clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

base::Status no_socket() {
  return base::fail(base::Kind::system, "HTTP/2", "a stream has no TLS of its own", {});
}

}  // namespace

base::Result<std::shared_ptr<H2Link>> H2Link::make(Core& core, http::H2Side side,
                                                   std::shared_ptr<Stream> socket, Wake& wake) {
  http::H2Limits limits = core.limits.h2;
  // When many connections share the room, a new one gets little of it and is slower for that.
  if (core.h2_room < std::int64_t{limits.connection_window} * 2)
    limits.connection_window = kLeastWindow;
  limits.stream_window = std::min(limits.stream_window, limits.connection_window);
  socket->attach(wake);
  std::shared_ptr<H2Link> link(new H2Link(core, std::move(socket), limits.connection_window));
  core.h2_room -= link->window_;
  link->framing_ = TRY(http::H2Connection::make(side, limits));
  link->wake_ = &wake;
  return link;
}

H2Link::~H2Link() {
  core_.h2_room += window_;
  socket_->close();
  socket_->detach();
}

bool H2Link::read() {
  for (int turn = 0; turn < kTurn; ++turn) {
    if (socket_->read_armed()) return true;
    // Nothing is awaited between the read and the last use of the shared buffer.
    const os::Moved got = socket_->try_read(core_.scratch);
    if (got.error == EAGAIN) {
      socket_->arm_read();
      return true;
    }
    if (got.failed() || got.end()) return false;
    framing_->feed({core_.scratch.data(), got.bytes}, now_ms());
    if (!write()) return false;
  }
  touch();
  return true;
}

bool H2Link::write() {
  while (true) {
    if (output_.empty()) output_ = framing_->output();
    if (output_.empty()) return !framing_->over();
    if (socket_->write_armed()) return true;
    const os::Moved put = socket_->try_write(output_);
    if (put.error == EAGAIN) {
      socket_->arm_write();
      return true;
    }
    if (put.failed()) return false;
    output_.remove_prefix(put.bytes);
  }
}

bool H2Link::pump() {
  if (!socket_->open()) return false;
  if (write() && read()) return true;
  close();
  return false;
}

void H2Link::touch() {
  if (wake_ == nullptr || std::exchange(touched_, true)) return;
  asio::post(core_.io, [self = shared_from_this()] {
    self->touched_ = false;
    if (self->wake_ != nullptr) self->wake_->notify();
  });
}

void H2Link::close() {
  if (!socket_->open()) return;
  (void)write();
  framing_->drop();
  socket_->close();
}

void H2Link::detach() {
  wake_ = nullptr;
  socket_->detach();
}

// --- A stream ----------------------------------------------------------------------------------

H2LinkStream::H2LinkStream(std::shared_ptr<H2Link> link, std::shared_ptr<http::H2Stream> stream,
                           http::H2Side side, Wake& wake)
    : link_(std::move(link)),
      stream_(std::move(stream)),
      usual_(side == http::H2Side::server ? http::H2Code::internal : http::H2Code::cancel) {
  attach(wake);
  stream_->on_change = [this] { changed(); };
}

H2LinkStream::~H2LinkStream() {
  end(usual_);
}

base::Status H2LinkStream::start_tls(const http::TlsContext&, Side, std::string_view) {
  return no_socket();
}
base::Status H2LinkStream::present(std::string_view) {
  return no_socket();
}
base::Status H2LinkStream::offer_http2() {
  return no_socket();
}

os::Moved H2LinkStream::try_read(std::span<char> into) {
  if (!open_) return {.error = ECONNABORTED};
  const http::H2Stream::Moved got = stream_->read(into);
  switch (got.state) {
    case http::H2Stream::State::moved:
      link_->touch();  // the peer may send on
      return {.bytes = got.bytes};
    case http::H2Stream::State::waits:
      return {.error = EAGAIN};
    case http::H2Stream::State::end:
      return {};
    case http::H2Stream::State::broken:
      return {.error = ECONNRESET};
  }
  return {.error = EPROTO};
}

os::Moved H2LinkStream::try_write(std::string_view bytes) {
  if (!open_) return {.error = ECONNABORTED};
  if (bytes.empty()) return {};
  const http::H2Stream::Moved put = stream_->write(bytes);
  if (put.state == http::H2Stream::State::waits) return {.error = EAGAIN};
  if (put.state != http::H2Stream::State::moved) return {.error = EPIPE};
  link_->touch();
  return {.bytes = put.bytes};
}

os::Moved H2LinkStream::try_write(std::string_view first, std::string_view second) {
  return try_write(first.empty() ? second : first);
}

void H2LinkStream::arm_read() {
  read_armed_ = true;
  changed();
}
void H2LinkStream::arm_write() {
  write_armed_ = true;
  changed();
}

void H2LinkStream::shut_down_write() {
  if (!open_) return;
  stream_->finish_writing();
  link_->touch();
}

void H2LinkStream::end(http::H2Code code) {
  if (!std::exchange(open_, false)) return;
  stream_->abandon(code);
  link_->touch();
}

void H2LinkStream::changed() {
  const bool news = (read_armed_ && stream_->readable()) || (write_armed_ && stream_->writable()) ||
                    stream_->broken();
  if (!news || told_) return;
  told_ = true;
  asio::post(link_->io(),
             [self = std::static_pointer_cast<H2LinkStream>(shared_from_this())] { self->tell(); });
}

void H2LinkStream::tell() {
  told_ = false;
  if (stream_->readable()) read_armed_ = false;
  if (stream_->writable()) write_armed_ = false;
  if (wake_ != nullptr) wake_->notify();
}

}  // namespace gateway
