// Text in, frames out, and the other way round, for one stream.
#include "http/h2_stream.h"

#include <algorithm>
#include <cstring>

#include "base/base.h"
#include "http/h2.h"

namespace http {

namespace {

constexpr std::size_t kMostOut = std::size_t{64} * 1024;  // content that waits to be sent
constexpr std::size_t kChunkRoom = 24;                    // a chunk's size line and its end
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::size_t copy(std::string_view from, std::span<char> into) {
  const std::size_t count = std::min(from.size(), into.size());
  std::memcpy(into.data(), from.data(), count);
  return count;
}

}  // namespace

H2Stream::H2Stream(H2Connection& connection, H2Side side, std::int32_t id)
    : connection_(&connection), side_(side), id_(id) {}

H2Stream::~H2Stream() {
  base::wipe(head_);
  base::wipe(out_);
}

// --- From the peer -----------------------------------------------------------------------------

void H2Stream::take_head(const std::vector<Field>& fields, H2Ends ends) {
  if (gone_) return;
  if (side_ == H2Side::server) {
    const Field* method = find_field(fields, ":method");
    method_ = method != nullptr ? method->value : std::string();
    text_ += h2_request_text(fields, ends);
  } else {
    text_ += h2_response_text(fields, method_, ends);
  }
  const Field* status = find_field(fields, ":status");
  head_in_ = status == nullptr || !status->value.starts_with('1');
  chunked_ = text_.ends_with("transfer-encoding: chunked\r\n\r\n");
  changed();
}

void H2Stream::take_content(std::string_view content) {
  content_ += content;
  changed();
}

void H2Stream::take_end(std::vector<Field> trailers) {
  ended_in_ = true;
  trailers_in_ = std::move(trailers);
  changed();
}

// Once all that came has been read, the end follows as text.
void H2Stream::end_input() {
  if (end_given_ || !ended_in_ || !head_in_) return;
  end_given_ = true;
  if (chunked_) text_ += last_chunk(trailers_in_);
}

std::size_t H2Stream::read_text(std::span<char> into) {
  const std::size_t count = copy(std::string_view(text_).substr(text_at_), into);
  text_at_ += count;
  if (text_at_ == text_.size()) {
    text_.clear();
    text_at_ = 0;
  }
  return count;
}

std::size_t H2Stream::read_content(std::span<char> into) {
  const std::string_view left = std::string_view(content_).substr(content_at_);
  std::size_t written = 0;
  std::size_t count = 0;
  if (chunked_) {
    count = std::min(left.size(), into.size() - kChunkRoom);
    written = copy(chunk_head(count), into);
    written += copy(left.substr(0, count), into.subspan(written));
    written += copy(kChunkEnd, into.subspan(written));
  } else {
    count = written = copy(left, into);
  }
  content_at_ += count;
  if (content_at_ == content_.size()) {
    content_.clear();
    content_at_ = 0;
  }
  if (connection_ != nullptr) connection_->consume(*this, count);
  return written;
}

H2Stream::Moved H2Stream::read(std::span<char> into) {
  // What a server said before it broke off is an answer's beginning.
  const bool said = side_ == H2Side::client && (!text_.empty() || !content_.empty());
  if (broken_ && !said) return {.state = State::broken};
  if (text_.empty() && content_.empty()) end_input();
  if (!text_.empty()) return {.bytes = read_text(into)};
  if (!content_.empty()) return {.bytes = read_content(into)};
  return {.state = ended_in_ ? State::end : State::waits};
}

bool H2Stream::readable() const {
  return broken_ || !text_.empty() || !content_.empty() || ended_in_;
}

void H2Stream::drop_input() {
  const std::size_t left = content_.size() - content_at_;
  content_.clear();
  content_at_ = 0;
  text_.clear();
  text_at_ = 0;
  if (connection_ != nullptr && left != 0) connection_->consume(*this, left);
}

// --- To the peer -------------------------------------------------------------------------------

// What is left of the text behind the head's end.
std::string_view H2Stream::take_own_head(std::string_view text) {
  const std::size_t held = head_.size();
  head_ += text;
  const auto end = head_.find(kHeadEnd, held < 3 ? 0 : held - 3);
  if (end == std::string::npos) return {};
  const std::size_t size = end + kHeadEnd.size();
  text.remove_prefix(size - held);
  if (!own_head(std::string_view(head_).substr(0, size))) broken_ = true;
  base::wipe(head_);
  head_.clear();
  return text;
}

bool H2Stream::own_head(std::string_view text) {
  auto head = side_ == H2Side::server ? h2_response_fields(text, method_) : h2_request_fields(text);
  if (!head) return false;
  if (side_ == H2Side::client) method_ = head->fields[0].value;
  if (!head->interim) {
    body_.emplace(head->body, 500, Trailers::all);
    out_ended_ = body_->done();
    head_sent_ = true;
  }
  const bool submitted = connection_->submit(*this, *head);
  for (Field& field : head->fields) base::wipe(field.value);
  return submitted;
}

bool H2Stream::take_own_body(std::string_view& text) {
  const std::size_t room = kMostOut - std::min(out_.size() - out_at_, kMostOut);
  if (room == 0) return false;
  const auto part = body_->read(text.substr(0, room));
  if (!part) {
    broken_ = true;
    return false;
  }
  out_ += part->content;
  text.remove_prefix(part->used);
  if (body_->done()) {
    out_ended_ = true;
    trailers_ = body_->trailers();
  }
  return part->used != 0;
}

H2Stream::Moved H2Stream::write(std::string_view text) {
  if (broken_ || closed_ || connection_ == nullptr) return {.state = State::broken};
  const std::size_t size = text.size();
  while (!text.empty() && !broken_) {
    if (!head_sent_) {
      text = take_own_head(text);
    } else if (out_ended_) {
      text = {};
    } else if (!take_own_body(text)) {
      break;
    }
  }
  if (broken_) return {.state = State::broken};
  if (deferred_ && (out_at_ != out_.size() || out_ended_)) connection_->resume(*this);
  if (text.size() == size) return {.state = State::waits};
  return {.bytes = size - text.size()};
}

bool H2Stream::writable() const {
  return broken_ || closed_ || !head_sent_ || out_ended_ || out_.size() - out_at_ < kMostOut;
}

void H2Stream::finish_writing() {
  if (std::exchange(finished_, true) || broken_ || connection_ == nullptr) return;
  if (head_sent_ && !out_ended_ && body_ && body_->closed()) {
    out_ended_ = true;
    if (deferred_) connection_->resume(*this);
  }
}

void H2Stream::abandon(H2Code code) {
  if (std::exchange(gone_, true)) return;
  on_change = nullptr;
  finish_writing();
  drop_input();
  if (connection_ == nullptr || closed_) return;
  if (side_ == H2Side::client && id_ == 0) return connection_->cut(*this, code);
  const bool whole = out_ended_ && !broken_;
  if (!whole || (side_ == H2Side::client && !ended_in_)) {
    connection_->cut(*this, code);
  } else if (out_sent_ && !ended_in_) {
    connection_->cut(*this, H2Code::no_error);
  }
}

bool H2Stream::held() const {
  return connection_ != nullptr && !closed_ && !out_ended_ && out_at_ != out_.size() &&
         connection_->window_closed(*this);
}

std::string_view H2Stream::next_output(std::size_t most) const {
  return std::string_view(out_).substr(out_at_, most);
}

void H2Stream::sent_output(std::size_t bytes) {
  out_at_ += bytes;
  if (out_at_ != out_.size()) return;
  // What a request holds may be a secret; what an answer holds is the client's.
  if (side_ == H2Side::client) base::wipe(out_);
  out_.clear();
  out_at_ = 0;
  changed();
}

void H2Stream::closed(H2Code code) {
  closed_ = true;
  refused_ = code == H2Code::refused;
  const bool whole = ended_in_ && (side_ == H2Side::client || out_sent_);
  broken_ = broken_ || !whole;
  changed();
}

}  // namespace http
