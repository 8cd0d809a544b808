// Frames in, clean frames out.
#include "http/websocket.h"

#include <algorithm>

namespace http {

namespace {

constexpr unsigned kContinuation = 0;
constexpr unsigned kText = 1;
constexpr unsigned kBinary = 2;
constexpr unsigned kClose = 8;
constexpr unsigned kPong = 10;
constexpr std::size_t kMostControl = 125;

bool is_control(unsigned kind) {
  return kind >= kClose;
}

void write_frame(unsigned kind, bool last, std::string_view payload, std::string& out) {
  out += static_cast<char>((last ? 0x80 : 0) | kind);
  std::size_t bytes = 0;
  if (payload.size() <= kMostControl) {
    out += static_cast<char>(payload.size());
  } else {
    bytes = payload.size() <= 0xFFFF ? 2 : 8;
    out += static_cast<char>(bytes == 2 ? 126 : 127);
  }
  while (bytes > 0) {
    --bytes;
    out += static_cast<char>(static_cast<std::uint64_t>(payload.size()) >> (8 * bytes));
  }
  out += payload;
}

}  // namespace

// Takes bytes of a head; `whole` once frame_ is set. False: no head that is taken.
bool FrameRedactor::take_head(std::string_view& piece, bool& whole) {
  const auto byte = [this](std::size_t at) { return static_cast<unsigned char>(held_[at]); };
  while (!piece.empty()) {
    held_ += piece.front();
    piece.remove_prefix(1);
    if (held_.size() < 2) continue;
    const unsigned size = byte(1) & 0x7FU;
    const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
    if ((byte(1) & 0x80U) != 0) return false;
    if (held_.size() < 2 + more) continue;
    std::uint64_t length = more == 0 ? size : 0;
    for (std::size_t i = 0; i < more; ++i) length = length << 8 | byte(2 + i);
    const Frame frame{.kind = byte(0) & 0x0FU, .last = (byte(0) & 0x80U) != 0, .left = length};
    if ((byte(0) & 0x70U) != 0 || length >> 63 != 0) return false;
    held_.clear();
    whole = true;
    return begin(frame);
  }
  return true;
}

bool FrameRedactor::begin(Frame frame) {
  if (is_control(frame.kind)) {
    if (frame.kind > kPong || !frame.last || frame.left > kMostControl) return false;
  } else if (frame.kind == kContinuation) {
    if (!in_message_) return false;
  } else {
    if ((frame.kind != kText && frame.kind != kBinary) || in_message_) return false;
    in_message_ = true;
    message_ = frame.kind;
    redactors_.clear();
    for (const auto& one : *redactions_) redactors_.push_back(std::make_unique<BodyRedactor>(*one));
  }
  frame_ = std::move(frame);
  return true;
}

std::string FrameRedactor::cleaned(std::string_view text, bool last) {
  std::string out(text);
  for (const auto& redactor : redactors_) {
    out = redactor->push(out);
    if (last) out += redactor->finish();
  }
  return out;
}

void FrameRedactor::take_payload(std::string_view& piece, std::string& out) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(frame_->left, piece.size()));
  const std::string_view part = piece.substr(0, size);
  piece.remove_prefix(size);
  frame_->left -= size;
  const bool ends = frame_->left == 0;
  if (is_control(frame_->kind)) {
    frame_->control += part;
    if (ends) end_frame({}, out);
    return;
  }
  const std::string text = cleaned(part, ends && frame_->last);
  if (ends) return end_frame(text, out);
  if (text.empty()) return;
  write_frame(std::exchange(message_, kContinuation), false, text, out);
}

void FrameRedactor::end_frame(std::string_view cleaned, std::string& out) {
  const Frame frame = *std::exchange(frame_, std::nullopt);
  if (is_control(frame.kind)) {
    std::string text = frame.control;
    for (const auto& one : *redactions_) text = one->clean(text);
    // A placeholder may be longer than what it stands for.
    write_frame(frame.kind, true, std::string_view(text).substr(0, kMostControl), out);
    return;
  }
  if (!frame.last && cleaned.empty()) return;
  write_frame(std::exchange(message_, kContinuation), frame.last, cleaned, out);
  if (frame.last) in_message_ = false;
}

std::optional<std::string> FrameRedactor::push(std::string_view piece) {
  std::string out;
  while (!piece.empty()) {
    bool whole = frame_.has_value();
    if (!whole && !take_head(piece, whole)) return std::nullopt;
    // Also where nothing follows: an empty frame is whole with its head.
    if (whole) take_payload(piece, out);
  }
  return out;
}

}  // namespace http
