// Any bytes as an answer: whatever is admitted is written so that it is read back the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  http::RequestHead request;
  request.method = (bytes[0] & 1) != 0 ? "HEAD" : "GET";
  request.websocket = (bytes[0] & 2) != 0;
  if (request.websocket)
    request.fields.push_back({"sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==", ""});
  const std::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto end = http::find_head_end(text, 0);
  if (!end || *end == 0) return 0;
  auto head = http::parse_response(text.substr(0, *end), request);
  if (!head) {
    if (head.error().status != 502 && head.error().status != 431) __builtin_trap();
    return 0;
  }
  const std::string sent = http::write_response(*head);
  const auto again_end = http::find_head_end(sent, 0);
  if (!again_end || *again_end != sent.size()) __builtin_trap();
  const auto again = http::parse_response(sent, request);
  head->minor = 1;
  if (!again || *again != *head) __builtin_trap();
  return 0;
}
