// Any bytes as a proxy's answer to CONNECT, with the end of its head found as the gateway finds it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/connect.h"
#include "http/http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto end = http::find_head_end(text, 0);
  if (end && *end > size) __builtin_trap();
  const auto status = http::read_connect_answer(end && *end != 0 ? text.substr(0, *end) : text);
  if (status && (*status < 100 || *status > 599)) __builtin_trap();
  return 0;
}
