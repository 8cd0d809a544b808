// One stream of an HTTP/2 connection, read and written as the text of HTTP/1.1: one request and its
// answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "http/body.h"
#include "http/field.h"
#include "http/h2_text.h"

namespace http {

class H2Connection;

enum class H2Side { server, client };

// RFC 9113 section 7.
enum class H2Code : std::uint32_t {
  no_error = 0,
  protocol = 1,
  internal = 2,
  refused = 7,
  cancel = 8,
  calm = 11,
};

// What is written is buffered up to a bound and goes out with H2Connection::output(); what is read
// gives the peer its window back. Held by shared_ptr: it may outlive its stream and its connection.
class H2Stream {
 public:
  H2Stream(H2Connection& connection, H2Side side, std::int32_t id);
  ~H2Stream();
  H2Stream(const H2Stream&) = delete;
  H2Stream& operator=(const H2Stream&) = delete;

  enum class State { moved, waits, end, broken };
  struct Moved {
    std::size_t bytes = 0;
    State state = State::moved;
  };
  // The message of the peer. `end` behind its last byte; broken where the stream was cut off.
  // `into` has room for 64 bytes at least.
  [[nodiscard]] Moved read(std::span<char> into);
  // Our message; takes as much as there is room for. Behind its end everything is swallowed.
  [[nodiscard]] Moved write(std::string_view text);
  // A body whose end is known by the end of the text ends here.
  void finish_writing();
  // Nobody reads or writes any more. A message that was written whole goes out nevertheless; one
  // that was not ends with `code`.
  void abandon(H2Code code);

  [[nodiscard]] bool readable() const;
  [[nodiscard]] bool writable() const;
  [[nodiscard]] bool broken() const { return broken_; }
  // The peer has not done anything for it.
  [[nodiscard]] bool refused() const { return refused_; }
  [[nodiscard]] bool begun() const { return head_sent_; }  // our final head was written
  // Written bytes wait for the peer's window, and more are to come.
  [[nodiscard]] bool held() const;
  [[nodiscard]] bool attached() const { return connection_ != nullptr; }

  // Told when one of these may have changed, from within calls of the connection: it must not call
  // back.
  std::function<void()> on_change;

 private:
  friend class H2Connection;
  [[nodiscard]] std::size_t read_text(std::span<char> into);
  [[nodiscard]] std::size_t read_content(std::span<char> into);
  void end_input();
  [[nodiscard]] std::string_view take_own_head(std::string_view text);
  [[nodiscard]] bool own_head(std::string_view head);
  [[nodiscard]] bool take_own_body(std::string_view& text);
  void changed() const {
    if (on_change) on_change();
  }
  void drop_input();

  // From the peer.
  void take_head(const std::vector<Field>& fields, H2Ends ends);
  void take_content(std::string_view content);
  void take_end(std::vector<Field> trailers);
  // To the peer: up to `most` bytes of content; whether these are the last, and the trailers then.
  [[nodiscard]] std::string_view next_output(std::size_t most) const;
  void sent_output(std::size_t bytes);
  void closed(H2Code code);

  H2Connection* connection_;
  H2Side side_;
  std::int32_t id_;
  std::string method_;

  std::vector<Field> fields_;  // of the block that is coming in
  std::string text_;           // heads and the end, as text
  std::size_t text_at_ = 0;
  std::string content_;
  std::size_t content_at_ = 0;
  bool head_in_ = false;  // the final head has come
  bool chunked_ = false;
  bool ended_in_ = false;
  std::vector<Field> trailers_in_;
  bool end_given_ = false;  // the end is in text_

  std::string head_;  // of ours, not whole yet
  std::optional<BodyReader> body_;
  std::string out_;
  std::size_t out_at_ = 0;
  std::vector<Field> trailers_;
  bool head_sent_ = false;
  bool out_ended_ = false;
  bool out_sent_ = false;  // the end went out
  bool deferred_ = false;  // the connection waits for more of out_
  bool finished_ = false;
  bool gone_ = false;
  bool broken_ = false;
  bool refused_ = false;
  bool closed_ = false;
};

}  // namespace http
