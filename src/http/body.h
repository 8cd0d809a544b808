// Bodies as they stream: where one ends, what of its bytes is content, chunks and trailers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/field.h"

namespace http {

// Which trailer fields go on. Of gRPC's answers those that a service makes up go on as well, but
// none that a head could have said of the connection, of framing, of the origin or of a session.
enum class Trailers {
  known,  // gRPC's own and digests
  grpc,   // all but those
  all,    // of text that our own code wrote
};

// Reads one body of any framing. Copies nothing: content comes back as views into what was given.
class BodyReader {
 public:
  // `reject_status`: 400 for a request's body, 502 for a response's.
  BodyReader(Body body, unsigned reject_status, Trailers trailers);

  struct Part {
    std::size_t used = 0;      // bytes of the input that are done with
    std::string_view content;  // the part of them that is content
  };
  // Takes the next piece out of `bytes`. Call again with the rest until `used` is 0 or done();
  // never takes a byte past the end of the body.
  [[nodiscard]] Parsed<Part> read(std::string_view bytes);
  // The peer has closed: fine after the end, or when that is how the end is known.
  [[nodiscard]] Parsed<void> closed();

  [[nodiscard]] bool done() const { return state_ == State::done; }
  // Trailer fields that may go on; all others were dropped. Valid when done().
  [[nodiscard]] const std::vector<Field>& trailers() const { return trailers_; }

 private:
  enum class State { content, until_close, chunk_size, chunk_content, chunk_end, trailer, done };
  [[nodiscard]] Parsed<Part> line(std::string_view bytes);
  [[nodiscard]] Parsed<void> take_line(std::string_view text);
  [[nodiscard]] Parsed<void> take_trailer(std::string_view text);
  [[nodiscard]] std::unexpected<Rejection> reject(std::string_view reason,
                                                  std::string_view text) const;

  State state_ = State::done;
  unsigned reject_status_;
  Trailers which_;
  std::uint64_t left_ = 0;
  std::string line_;  // a chunk-size or trailer line that is not whole yet
  std::size_t trailer_bytes_ = 0;
  std::size_t trailer_count_ = 0;
  std::vector<Field> trailers_;
};

// A chunk is chunk_head(size) + content + kChunkEnd; size is not 0.
[[nodiscard]] std::string chunk_head(std::size_t size);
inline constexpr std::string_view kChunkEnd = "\r\n";
// The end of a chunked body: the last chunk, the trailers, the empty line.
[[nodiscard]] std::string last_chunk(const std::vector<Field>& trailers);

}  // namespace http
