// Bytes that were read and are not used up yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/base.h"

namespace gateway {

// Grows while a head is not whole, never past what make_room() is asked for.
class Buffer {
 public:
  [[nodiscard]] std::string_view view() const { return {bytes_.data() + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  void consume(std::size_t count) {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Free space of at least `least` bytes behind what is held; views become invalid.
  std::span<char> make_room(std::size_t least) {
    if (begin_ != 0 && bytes_.size() - end_ < least) {
      bytes_.erase(0, begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (bytes_.size() - end_ < least) bytes_.resize(end_ + least);
    return {bytes_.data() + end_, bytes_.size() - end_};
  }
  void added(std::size_t count) { end_ += count; }
  void clear() { begin_ = end_ = 0; }
  // Puts text in front of what is held; views become invalid. What the bytes held is wiped.
  void put_front(std::string_view text) {
    std::string bytes(text);
    bytes += view();
    base::wipe(bytes_);
    bytes_ = std::move(bytes);
    begin_ = 0;
    end_ = bytes_.size();
  }
  // Wipes all that has been consumed.
  void scrub() { put_front({}); }
  // What is held, as a string of its own.
  [[nodiscard]] std::string take() {
    std::string rest(view());
    begin_ = end_ = 0;
    return rest;
  }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Bytes that are to be written: text of ours, then perhaps a view into a Buffer that stays as it is
// until all has gone.
class Outgoing {
 public:
  std::string text;
  std::string_view content;

  [[nodiscard]] bool empty() const { return at_ == text.size() && content.empty(); }
  [[nodiscard]] std::string_view rest() const { return std::string_view(text).substr(at_); }
  void wrote(std::size_t count) {
    const std::size_t of_text = std::min(count, text.size() - at_);
    at_ += of_text;
    content.remove_prefix(count - of_text);
    if (at_ == text.size()) clear_text();
  }
  // Whether what is written holds a secret: then the text is wiped as soon as it has gone.
  bool secret = false;
  void clear_text() {
    if (std::exchange(secret, false)) base::wipe(text);
    text.clear();
    at_ = 0;
  }

 private:
  std::size_t at_ = 0;
};

}  // namespace gateway
