// The lines that loader.mjs writes: KIND, then text in which \\, \n and \0 are escaped.
#include "isolate/isolate.h"

namespace isolate {
namespace {

constexpr int kMostStatus = 255;

}  // namespace

void Lines::put(unsigned char byte) {
  if (pieces_.empty() || pieces_.back().stream != stream_ || pieces_.back().status) {
    pieces_.push_back({stream_, {}, std::nullopt});
  }
  pieces_.back().bytes += static_cast<char>(byte);
}

void Lines::take(unsigned char byte) {
  switch (at_) {
    case At::over:
      return;
    case At::start:
      at_ = At::text;
      latin1_ = byte == 'O' || byte == 'E';
      stream_ = byte == 'o' || byte == 'O' ? 1 : 2;
      escaped_ = false;
      lead_ = 0;
      status_ = 0;
      if (byte == 'x') at_ = At::status;
      if (byte == '\n') at_ = At::start;
      return;
    case At::status:
      if (byte >= '0' && byte <= '9') {
        status_ = status_ * 10 + (byte - '0');
        if (status_ > kMostStatus) status_ = kMostStatus;
        return;
      }
      pieces_.push_back({0, {}, status_});
      at_ = At::over;
      return;
    case At::text:
      break;
  }
  if (byte == '\n') {
    at_ = At::start;
  } else if (escaped_) {
    escaped_ = false;
    put(byte == 'n' ? '\n' : (byte == '0' ? '\0' : byte));
  } else if (byte == '\\') {
    escaped_ = true;
  } else if (!latin1_ || byte < 0x80) {
    put(byte);
  } else if (byte >= 0xC0) {
    lead_ = byte;
  } else {
    put(static_cast<unsigned char>((lead_ << 6) | (byte & 0x3F)));
  }
}

std::vector<Piece> Lines::feed(std::string_view bytes) {
  for (const char c : bytes) take(static_cast<unsigned char>(c));
  return std::exchange(pieces_, {});
}

}  // namespace isolate
