// Bodies as they stream (RFC 9112 sections 6 and 7).
#include "http/body.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "base/text.h"
#include "http/syntax.h"

namespace http {

namespace {

constexpr std::size_t kMaxChunkLine = 256;  // extensions included
constexpr std::size_t kMaxTrailers = std::size_t{8} * 1024;
// Trailers that go on: nothing among them can change what a head said.
constexpr std::initializer_list<std::string_view> kTrailers = {
    "grpc-status",    "grpc-message", "grpc-status-details-bin",
    "content-digest", "repr-digest",  "server-timing"};

// What only a head may say, or what only one that was judged as such may bring.
constexpr std::initializer_list<std::string_view> kHeadOnly = {"host",
                                                               "content-length",
                                                               "content-type",
                                                               "content-encoding",
                                                               "content-range",
                                                               "connection",
                                                               "keep-alive",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "upgrade",
                                                               "authorization",
                                                               "set-cookie",
                                                               "cookie",
                                                               "cache-control",
                                                               "location",
                                                               "alt-svc",
                                                               "www-authenticate",
                                                               "expect",
                                                               "max-forwards",
                                                               "report-to",
                                                               "nel",
                                                               "reporting-endpoints",
                                                               "alt-used",
                                                               "age",
                                                               "authentication-info",
                                                               "expires",
                                                               "date",
                                                               "vary",
                                                               "retry-after"};

bool among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool goes_on(std::string_view name, Trailers which) {
  if (which == Trailers::all || among(name, kTrailers)) return true;
  return which == Trailers::grpc && !among(name, kHeadOnly) && !name.starts_with("proxy-") &&
         !name.starts_with("x-cerco-") && !name.starts_with("x-forwarded-") &&
         !name.starts_with("access-control-");
}

// The size in front of any extension; nullopt when it is not 1 to 15 hex digits.
std::optional<std::uint64_t> chunk_size(std::string_view line) {
  const auto end = line.find_first_of("; \t");
  const std::string_view digits = line.substr(0, end);
  if (digits.empty() || digits.size() > 15 || !all(digits, kHexDigit)) return std::nullopt;
  if (end != std::string_view::npos) {
    const std::string_view rest = trim(line.substr(end));
    if ((!rest.empty() && rest[0] != ';') || !all(rest, kValue)) return std::nullopt;
  }
  std::uint64_t size = 0;
  for (char c : digits) {
    const unsigned digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    size = size * 16 + digit;
  }
  return size;
}

}  // namespace

BodyReader::BodyReader(Body body, unsigned reject_status, Trailers trailers)
    : reject_status_(reject_status), which_(trailers) {
  switch (body.framing) {
    case Framing::none:
      break;
    case Framing::length:
      left_ = body.length;
      if (left_ > 0) state_ = State::content;
      break;
    case Framing::chunked:
      state_ = State::chunk_size;
      break;
    case Framing::until_close:
      state_ = State::until_close;
      break;
  }
}

std::unexpected<Rejection> BodyReader::reject(std::string_view reason,
                                              std::string_view text) const {
  return http::reject(reject_status_, reason, text);
}

Parsed<BodyReader::Part> BodyReader::read(std::string_view bytes) {
  if (bytes.empty() || state_ == State::done) return Part{};
  if (state_ == State::until_close) return Part{bytes.size(), bytes};
  if (state_ != State::content && state_ != State::chunk_content) return line(bytes);
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  left_ -= size;
  if (left_ == 0) state_ = state_ == State::content ? State::done : State::chunk_end;
  return Part{size, bytes.substr(0, size)};
}

// Takes bytes up to the end of a line, which may come in pieces.
Parsed<BodyReader::Part> BodyReader::line(std::string_view bytes) {
  const std::size_t most = state_ == State::trailer ? kMaxTrailers : kMaxChunkLine;
  const auto end = bytes.find('\n');
  const std::size_t used = end == std::string_view::npos ? bytes.size() : end + 1;
  if (line_.size() + used > most) return reject("chunk", "a chunk or trailer line is too long");
  line_ += bytes.substr(0, used);
  if (end == std::string_view::npos) return Part{used, {}};
  if (!line_.ends_with("\r\n"))
    return reject("chunk", "a chunk or trailer line does not end in CRLF");
  const std::string text = line_.substr(0, line_.size() - 2);
  line_.clear();
  if (auto taken = take_line(text); !taken) return std::unexpected(std::move(taken).error());
  return Part{used, {}};
}

Parsed<void> BodyReader::take_line(std::string_view text) {
  if (state_ == State::trailer) return take_trailer(text);
  if (state_ == State::chunk_end) {
    if (!text.empty()) return reject("chunk", "a chunk is longer than it said");
    state_ = State::chunk_size;
    return {};
  }
  const auto size = chunk_size(text);
  if (!size) return reject("chunk", "a chunk has no size");
  left_ = *size;
  state_ = left_ == 0 ? State::trailer : State::chunk_content;
  return {};
}

Parsed<void> BodyReader::take_trailer(std::string_view text) {
  if (text.empty()) {
    state_ = State::done;
    return {};
  }
  trailer_bytes_ += text.size() + 2;
  if (trailer_bytes_ > kMaxTrailers || ++trailer_count_ > kMaxFields) {
    return reject("trailers", "the trailers are longer than 8 KiB");
  }
  std::vector<Field> fields;
  auto parsed = parse_fields(std::string(text) + "\r\n", reject_status_, fields);
  if (!parsed) return parsed;
  if (goes_on(fields[0].name, which_)) trailers_.push_back(std::move(fields[0]));
  return {};
}

Parsed<void> BodyReader::closed() {
  if (state_ == State::until_close) state_ = State::done;
  if (state_ != State::done)
    return reject("body-cut", "the peer closed before the end of the body");
  return {};
}

std::string chunk_head(std::size_t size) {
  return fmt::format("{:x}\r\n", size);
}

std::string last_chunk(const std::vector<Field>& trailers) {
  std::string out = "0\r\n";
  write_fields(trailers, out);
  return out + "\r\n";
}

}  // namespace http
