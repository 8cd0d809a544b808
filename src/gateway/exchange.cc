// The exchange: upload and download each go as far as they can, then both sleep together, so that
// an answer may come before the request has ended (413, 100-continue) and neither waits for the
// other.
#include "gateway/exchange.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <optional>

namespace gateway {
namespace {

constexpr std::size_t kRead = std::size_t{16} * 1024;
constexpr std::size_t kBulk = std::size_t{64} * 1024;
constexpr int kMostInterim = 8;  // 1xx answers before the final one (N135)
constexpr int kTurn = 32;

bool speaks_grpc(const http::ResponseHead& head) {
  const http::Field* type = http::find_field(head.fields, "content-type");
  return type != nullptr && type->value.starts_with("application/grpc");
}

class Exchange {
 public:
  explicit Exchange(ExchangeStart& start)
      : s_(start),
        connection_(start.connection),
        client_(*start.connection.client),
        upstream_(*start.connection.upstream),
        request_body_(start.request.body, 400, http::Trailers::known) {
    if (!s_.marked.empty() && s_.request.body.framing != http::Framing::none) {
      scan_.emplace(s_.marked);
    }
    if (!s_.canaries.empty() && s_.request.body.framing != http::Framing::none) {
      canaries_.emplace(s_.canaries);
    }
    up_.text = http::write_request(s_.request);
    up_.secret = !s_.secret_fields.empty() || s_.secret_target;
    if (s_.secret_target) base::wipe(s_.request.target);
    for (http::Field& field : s_.request.fields) {
      if (std::ranges::find(s_.secret_fields, field.name) != s_.secret_fields.end()) {
        base::wipe(field.value);
      }
    }
    end_upload_if_done();
  }
  ~Exchange() { up_.clear_text(); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  asio::awaitable<ExchangeEnd> run();

 private:
  enum class Step { moved, waits, over };

  Step upload();
  Step take_upload();
  [[nodiscard]] bool shows_canary(std::string_view content);
  void frame_upload(std::string_view content);
  void end_upload_if_done();
  Step download();
  Step read_head();
  Step take_head(std::size_t length);
  Step take_final(http::ResponseHead head);
  Step take_body();
  void clean(http::ResponseHead& head) const;
  void take_redactors();
  void frame_download(std::string_view content);
  void finish_download();
  [[nodiscard]] bool length_broken() const;
  Step write_down();
  Step upstream_ended(int error);
  Step fail(std::string problem) {
    end_.problem = std::move(problem);
    return Step::over;
  }
  [[nodiscard]] bool upload_done() const {
    return upload_given_up_ || (upload_ended_ && up_.empty());
  }
  void finish();

  ExchangeStart& s_;
  Connection& connection_;
  Stream& client_;
  Stream& upstream_;
  ExchangeEnd end_;

  http::BodyReader request_body_;
  std::optional<http::BodyScan> scan_;
  std::optional<http::BodyScan> canaries_;
  Outgoing up_;
  bool upload_ended_ = false;
  bool upload_given_up_ = false;
  std::size_t used_up_ = 0;  // of from_client, once up_.content has gone

  std::optional<http::ResponseHead> head_;  // the final one
  std::optional<http::BodyReader> response_body_;
  std::vector<std::unique_ptr<http::BodyRedactor>> redactors_;
  std::uint64_t framed_ = 0;  // bytes of the body that were made ready for the client
  bool encoded_ = false;      // the answer's body cannot be looked through
  Outgoing down_;
  std::size_t seen_ = 0;
  std::size_t used_down_ = 0;
  int interim_ = 0;
  bool got_bytes_ = false;
  bool upstream_closed_ = false;
  bool download_ended_ = false;
};

// --- Upload ------------------------------------------------------------------------------------

void Exchange::frame_upload(std::string_view content) {
  if (s_.request.body.framing == http::Framing::chunked) {
    up_.text += http::chunk_head(content.size());
    up_.text += content;
    up_.text += http::kChunkEnd;
  } else {
    up_.content = content;
  }
}

// The piece that shows it whole does not go out.
bool Exchange::shows_canary(std::string_view content) {
  if (!canaries_) return false;
  const auto seen = canaries_->scan(content);
  if (!seen.empty()) end_.canary = seen.front();
  return !seen.empty();
}

// Takes the next piece of the body out of what the client has sent.
Exchange::Step Exchange::take_upload() {
  if (s_.from_client.empty()) {
    if (client_.read_armed()) return Step::waits;
    const auto room = s_.from_client.make_room(kRead);
    const os::Moved got = client_.try_read(room);
    if (got.error == EAGAIN) {
      client_.arm_read();
      return Step::waits;
    }
    if (got.failed()) return fail("client");
    if (got.end()) return fail("client");
    s_.from_client.added(got.bytes);
  }
  const auto part = request_body_.read(s_.from_client.view());
  if (!part) return fail(part.error().reason);
  used_up_ = part->used;
  if (part->content.empty()) {
    s_.from_client.consume(std::exchange(used_up_, 0));
    for (const http::Field& field : request_body_.trailers()) {
      if (shows_canary(field.value)) return fail("canary");
    }
    end_upload_if_done();
    return Step::moved;
  }
  end_.up += part->content.size();
  if (end_.up > s_.most_body) return fail("max-body");
  if (!s_.budget.up.take(part->content.size())) return fail("budget");
  if (shows_canary(part->content)) return fail("canary");
  if (scan_) {
    for (const std::size_t mark : scan_->scan(part->content)) end_.in_body.push_back(mark);
  }
  frame_upload(part->content);
  if (up_.content.empty()) s_.from_client.consume(std::exchange(used_up_, 0));
  end_upload_if_done();
  return Step::moved;
}

void Exchange::end_upload_if_done() {
  if (!request_body_.done() || upload_ended_) return;
  upload_ended_ = true;
  if (s_.request.body.framing == http::Framing::chunked) {
    up_.text += http::last_chunk(request_body_.trailers());
  }
}

Exchange::Step Exchange::upload() {
  if (upload_done()) return Step::waits;
  // The head goes out together with what has come of the body.
  const bool more_at_hand = !upload_ended_ && !up_.secret && up_.content.empty() &&
                            !s_.from_client.empty() && up_.rest().size() < kRead;
  if (up_.empty() || more_at_hand) {
    const Step step = take_upload();
    if (step != Step::moved || up_.empty()) return step;
  }
  if (upstream_.write_armed()) return Step::waits;
  const os::Moved put = upstream_.try_write(up_.rest(), up_.content);
  if (put.error == EAGAIN) {
    upstream_.arm_write();
    return Step::waits;
  }
  if (put.failed()) {
    // The answer may be there all the same: a server that refuses a body says so and closes.
    upload_given_up_ = true;
    up_.content = {};
    up_.clear_text();
    return Step::moved;
  }
  up_.wrote(put.bytes);
  if (up_.content.empty() && used_up_ != 0) s_.from_client.consume(std::exchange(used_up_, 0));
  return Step::moved;
}

// --- Download ----------------------------------------------------------------------------------

Exchange::Step Exchange::upstream_ended(int error) {
  upstream_closed_ = true;
  if (!head_) {
    end_.silent = !got_bytes_;
    return fail("upstream");
  }
  if (error != 0) return fail("upstream");
  if (const auto closed = response_body_->closed(); !closed) return fail(closed.error().reason);
  return Step::moved;
}

// More bytes of a head or a body.
Exchange::Step Exchange::read_head() {
  const auto whole = http::find_head_end(s_.from_upstream.view(), seen_);
  if (!whole) return fail(whole.error().reason);
  if (*whole != 0) return take_head(*whole);
  seen_ = s_.from_upstream.view().size();
  if (upstream_.read_armed()) return Step::waits;
  const auto room = s_.from_upstream.make_room(kRead);
  const os::Moved got = upstream_.try_read(room);
  if (got.error == EAGAIN) {
    upstream_.arm_read();
    return Step::waits;
  }
  if (got.failed() || got.end()) return upstream_ended(got.error);
  got_bytes_ = true;
  s_.from_upstream.added(got.bytes);
  return Step::moved;
}

Exchange::Step Exchange::take_head(std::size_t length) {
  auto head = http::parse_response(s_.from_upstream.view().substr(0, length), s_.request);
  if (!head) return fail(head.error().reason);
  if (!s_.budget.down.take(length)) return fail("budget");
  s_.from_upstream.consume(length);
  seen_ = 0;
  if (!http::interim(*head)) return take_final(std::move(*head));
  if (++interim_ > kMostInterim) return fail("interim-flood");
  if (s_.request.minor == 0) return Step::moved;
  clean(*head);
  down_.text += http::write_response(*head);
  return Step::moved;
}

void Exchange::clean(http::ResponseHead& head) const {
  if (s_.cookies == Cookies::drop) http::remove_fields(head.fields, "set-cookie");
  for (const auto& redaction : s_.redactions) {
    head.phrase = redaction->clean(head.phrase);
    redaction->clean(head.fields);
  }
}

// A secret that was lent while the answer streamed is looked for from here on: it had not gone out
// before.
void Exchange::take_redactors() {
  while (redactors_.size() < s_.redactions.size()) {
    const http::Redaction& next = *s_.redactions[redactors_.size()];
    redactors_.emplace_back(std::make_unique<http::BodyRedactor>(next));
  }
}

Exchange::Step Exchange::take_final(http::ResponseHead head) {
  if (http::carries_dns(head.fields)) return fail("dns-over-https");
  // Frames of an extension that nobody asked for could not be read (RFC 6455 section 4.1).
  if (head.websocket && http::find_field(head.fields, "sec-websocket-extensions") != nullptr &&
      http::find_field(s_.request.fields, "sec-websocket-extensions") == nullptr) {
    return fail("websocket-extension");
  }
  response_body_.emplace(head.body, 502,
                         speaks_grpc(head) ? http::Trailers::grpc : http::Trailers::known);
  end_.keep_upstream = head.keep_alive && head.body.framing != http::Framing::until_close;
  const http::Field* encoding = http::find_field(head.fields, "content-encoding");
  encoded_ = encoding != nullptr && encoding->value != "identity";
  if (!s_.redactions.empty() && head.body.framing != http::Framing::none) {
    // What is compressed cannot be looked through; it was asked for as it is (N164).
    if (encoded_) return fail("encoded-response");
    for (const auto& redaction : s_.redactions) {
      if (head.body.framing != http::Framing::length || redaction->keeps_length()) continue;
      head.body = {.framing =
                       s_.request.minor == 0 ? http::Framing::until_close : http::Framing::chunked};
    }
  }
  clean(head);
  if (s_.request.minor == 0 && head.body.framing == http::Framing::chunked) {
    head.body = {.framing = http::Framing::until_close};  // HTTP/1.0 knows no chunks
  }
  end_.status = head.status;
  end_.upgraded = head.websocket;
  head.keep_alive =
      s_.request.keep_alive && head.body.framing != http::Framing::until_close && upload_done();
  end_.keep_client = head.keep_alive;
  if (s_.request.minor == 0 && head.keep_alive) {
    http::set_field(head.fields, "connection", "keep-alive");
  }
  down_.text += http::write_response(head);
  head_ = std::move(head);
  if (response_body_->done()) finish_download();
  return Step::moved;
}

void Exchange::frame_download(std::string_view content) {
  if (content.empty()) return;
  framed_ += content.size();
  if (head_->body.framing == http::Framing::chunked) {
    down_.text += http::chunk_head(content.size());
    down_.text += content;
    down_.text += http::kChunkEnd;
  } else {
    down_.text += content;
  }
}

void Exchange::finish_download() {
  if (download_ended_) return;
  download_ended_ = true;
  std::string rest;
  for (const auto& redactor : redactors_) {
    rest = redactor->push(rest) + redactor->finish();
  }
  frame_download(rest);
  if (head_->body.framing == http::Framing::chunked) {
    std::vector<http::Field> trailers = response_body_->trailers();
    for (const auto& redaction : s_.redactions) redaction->clean(trailers);
    down_.text += http::last_chunk(trailers);
  }
}

// A secret that was lent after the head had told a length may change it: then the client must not
// take the answer for whole.
bool Exchange::length_broken() const {
  if (head_->body.framing != http::Framing::length) return false;
  return framed_ > head_->body.length || (download_ended_ && framed_ != head_->body.length);
}

Exchange::Step Exchange::take_body() {
  if (s_.from_upstream.empty() && !upstream_closed_) {
    if (upstream_.read_armed()) return Step::waits;
    const auto room = s_.from_upstream.make_room(end_.down > kBulk ? kBulk : kRead);
    const os::Moved got = upstream_.try_read(room);
    if (got.error == EAGAIN) {
      upstream_.arm_read();
      return Step::waits;
    }
    if (got.failed() || got.end()) {
      const Step step = upstream_ended(got.error);
      if (step == Step::moved) finish_download();
      return step;
    }
    s_.from_upstream.added(got.bytes);
  }
  const auto part = response_body_->read(s_.from_upstream.view());
  if (!part) return fail(part.error().reason);
  end_.down += part->content.size();
  if (!s_.budget.down.take(part->content.size())) return fail("budget");
  used_down_ = part->used;
  take_redactors();
  if (encoded_ && !redactors_.empty()) return fail("encoded-response");
  if (!redactors_.empty()) {
    std::string text(part->content);
    for (const auto& redactor : redactors_) text = redactor->push(text);
    frame_download(text);
  } else if (head_->body.framing == http::Framing::chunked) {
    frame_download(part->content);
  } else {
    down_.content = part->content;
    framed_ += part->content.size();
  }
  if (down_.content.empty()) s_.from_upstream.consume(std::exchange(used_down_, 0));
  if (response_body_->done()) finish_download();
  if (length_broken()) return fail("redacted-length");
  return Step::moved;
}

Exchange::Step Exchange::write_down() {
  if (client_.write_armed()) return Step::waits;
  const os::Moved put = client_.try_write(down_.rest(), down_.content);
  if (put.error == EAGAIN) {
    client_.arm_write();
    return Step::waits;
  }
  if (put.failed()) return fail("client");
  end_.answered = true;
  down_.wrote(put.bytes);
  if (down_.content.empty() && used_down_ != 0) {
    s_.from_upstream.consume(std::exchange(used_down_, 0));
  }
  return Step::moved;
}

Exchange::Step Exchange::download() {
  // A head goes out together with the first of its body, where that has come along.
  const bool more_at_hand = head_ && !download_ended_ && down_.content.empty() &&
                            !s_.from_upstream.empty() && down_.rest().size() < kRead;
  if (!down_.empty() && !more_at_hand) return write_down();
  if (download_ended_) return Step::over;
  return head_ ? take_body() : read_head();
}

// --- Both --------------------------------------------------------------------------------------

void Exchange::finish() {
  if (!end_.problem.empty()) {
    end_.keep_client = false;
    end_.keep_upstream = false;
    return;
  }
  end_.keep_client = end_.keep_client && upload_done() && !upload_given_up_;
  end_.keep_upstream = end_.keep_upstream && end_.keep_client && !upstream_closed_ &&
                       (s_.from_upstream.empty() || end_.upgraded);
}

asio::awaitable<ExchangeEnd> Exchange::run() {
  connection_.allow(connection_.core.limits.idle);
  // The answer is not there yet: to wait first saves a call in vain.
  bool asked = false;
  int moves = 0;
  if (!s_.budget.up.take(up_.text.size())) {
    (void)fail("budget");
    finish();
    co_return std::move(end_);
  }
  while (true) {
    const Step up = upload();
    if (up == Step::over) break;
    if (!asked && upload_ended_ && up_.empty() && !upstream_.holds_bytes()) {
      upstream_.arm_read();
      asked = true;
    }
    const Step down = download();
    if (down == Step::over) break;
    if (up == Step::moved || down == Step::moved) {
      if (++moves < kTurn) continue;
      asio::post(connection_.core.io, [alive = connection_.client, &connection = connection_] {
        if (alive->attached()) connection.wake.notify();
      });
    }
    moves = 0;
    if (!co_await connection_.pause()) {
      end_.problem = connection_.end_problem();
      break;
    }
    if (client_.broken()) {
      (void)fail("client");
      break;
    }
    connection_.allow(connection_.core.limits.idle);
  }
  finish();
  co_return std::move(end_);
}

}  // namespace

asio::awaitable<ExchangeEnd> exchange(ExchangeStart start) {
  Exchange running(start);
  co_return co_await running.run();
}

}  // namespace gateway
