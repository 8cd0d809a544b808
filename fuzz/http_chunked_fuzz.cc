// Any bytes as a body: the outcome does not depend on how they are cut, and never takes more than
// there is; and as something to redact, in pieces or whole.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

std::string run(std::string_view text, std::size_t step) {
  http::BodyReader reader({http::Framing::chunked, 0}, 400, http::Trailers::known);
  std::string out;
  while (!text.empty() && !reader.done()) {
    std::string_view piece = text.substr(0, step);
    const std::size_t size = piece.size();
    while (!piece.empty() && !reader.done()) {
      const auto part = reader.read(piece);
      if (!part) return out + "!" + part.error().reason;
      if (part->used == 0 || part->used > piece.size()) __builtin_trap();
      out += part->content;
      piece.remove_prefix(part->used);
    }
    text.remove_prefix(size - piece.size());
  }
  return out + (reader.done() ? "#" : "?") + std::string(text);
}

std::string redacted(const http::Redaction& redaction, std::string_view text, std::size_t step) {
  http::BodyRedactor body(redaction);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) out += body.push(text.substr(at, step));
  return out + body.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const std::size_t step = 1 + bytes[0] % 16;
  if (run(text, step) != run(text, size)) __builtin_trap();
  static const http::Redaction kRedaction =
      *http::Redaction::of("aab/aabaab", "ph", {.place = http::Place::basic, .user = "u"});
  if (redacted(kRedaction, text, step) != kRedaction.clean(text)) __builtin_trap();
  return 0;
}
