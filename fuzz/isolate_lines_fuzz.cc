// Any bytes as lines of the engine: the same comes out in pieces of any size, nothing after an exit
// status, and never more than what came in.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "isolate/isolate.h"

namespace {

struct Read {
  std::string streams[3];
  int status = -1;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view text, std::size_t step) {
  isolate::Lines lines;
  Read all;
  for (std::size_t at = 0; at < text.size(); at += step) {
    for (const isolate::Piece& piece : lines.feed(text.substr(at, step))) {
      if (all.status >= 0 || piece.stream < 0 || piece.stream > 2) __builtin_trap();
      if (piece.status) {
        all.status = *piece.status;
        if (all.status < 0 || all.status > 255) __builtin_trap();
      } else {
        all.streams[piece.stream] += piece.bytes;
      }
    }
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const Read whole = read(text, size + 1);
  if (whole != read(text, 1) || whole != read(text, 3)) __builtin_trap();
  if (whole.streams[0] != "" || whole.streams[1].size() + whole.streams[2].size() > size) {
    __builtin_trap();
  }
  return 0;
}
