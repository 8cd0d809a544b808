// An HTTP/2 connection over its socket, and its streams as the streams that sessions work on.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "gateway/core.h"
#include "gateway/stream.h"
#include "http/http.h"

namespace gateway {

// Moves bytes between a socket and the framing; whoever owns it pumps it when its wake is told.
class H2Link : public std::enable_shared_from_this<H2Link> {
 public:
  // `socket` is through its handshake; `wake` is the owner's and must live until detach(). What the
  // peer may send ahead is taken out of what the core has left for all.
  static base::Result<std::shared_ptr<H2Link>> make(Core& core, http::H2Side side,
                                                    std::shared_ptr<Stream> socket, Wake& wake);
  ~H2Link();
  H2Link(const H2Link&) = delete;
  H2Link& operator=(const H2Link&) = delete;

  // Reads and writes what can be. False: the connection is over.
  [[nodiscard]] bool pump();
  // Something is to be written: has the owner pump soon.
  void touch();
  // Writes what there is of a last word, and no more after that.
  void close();
  void detach();

  [[nodiscard]] http::H2Connection& framing() { return *framing_; }
  [[nodiscard]] asio::io_context& io() { return core_.io; }
  [[nodiscard]] bool open() const { return socket_->open(); }

 private:
  H2Link(Core& core, std::shared_ptr<Stream> socket, std::int32_t window)
      : core_(core), socket_(std::move(socket)), window_(window) {}
  [[nodiscard]] bool read();
  [[nodiscard]] bool write();

  Core& core_;
  std::shared_ptr<Stream> socket_;
  std::int32_t window_;
  Wake* wake_ = nullptr;
  std::unique_ptr<http::H2Connection> framing_;
  std::string_view output_;  // of framing_, what is not written yet
  bool touched_ = false;
};

// One stream of a link, as a session sees it.
class H2LinkStream final : public Stream {
 public:
  H2LinkStream(std::shared_ptr<H2Link> link, std::shared_ptr<http::H2Stream> stream,
               http::H2Side side, Wake& wake);
  ~H2LinkStream() override;

  [[nodiscard]] base::Status start_tls(const http::TlsContext& context, Side side,
                                       std::string_view host) override;
  [[nodiscard]] base::Status present(std::string_view pem) override;
  [[nodiscard]] base::Status offer_http2() override;
  [[nodiscard]] os::Moved handshake() override { return {.error = EPROTO}; }
  [[nodiscard]] std::string_view protocol() const override { return "h2"; }
  [[nodiscard]] os::Moved try_read(std::span<char> into) override;
  [[nodiscard]] os::Moved try_write(std::string_view bytes) override;
  [[nodiscard]] os::Moved try_write(std::string_view first, std::string_view second) override;
  void arm_read() override;
  void arm_write() override;
  [[nodiscard]] bool read_armed() const override { return read_armed_; }
  [[nodiscard]] bool write_armed() const override { return write_armed_; }
  void shut_down_write() override;
  void close() override { end(usual_); }
  void reset() override { end(usual_); }
  void turn_down() override { end(http::H2Code::refused); }
  [[nodiscard]] bool open() const override { return open_; }
  [[nodiscard]] int fd() override { return -1; }
  [[nodiscard]] bool tls() const override { return true; }
  [[nodiscard]] bool holds_bytes() const override { return stream_->readable(); }
  [[nodiscard]] bool quiet() override { return open_ && !stream_->readable(); }
  [[nodiscard]] bool broken() const override { return stream_->broken(); }
  [[nodiscard]] bool refused() const override { return stream_->refused(); }
  [[nodiscard]] std::string certificate_problem() const override { return {}; }

 private:
  void end(http::H2Code code);
  void changed();
  void tell();

  std::shared_ptr<H2Link> link_;
  std::shared_ptr<http::H2Stream> stream_;
  http::H2Code usual_;  // what a stream that did not come to its end is ended with
  bool read_armed_ = false;
  bool write_armed_ = false;
  bool told_ = false;  // a notice is on its way
  bool open_ = true;
};

}  // namespace gateway
