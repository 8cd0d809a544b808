// Any bytes as a ClientHello: never read past their end, and the same answer for the same bytes in
// smaller records.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

std::string number(std::size_t value, std::size_t size) {
  std::string out;
  for (std::size_t i = size; i > 0; --i) out += static_cast<char>(value >> (8 * (i - 1)));
  return out;
}

// The first record's content in records of one to 32 bytes, behind the same version.
std::string split(std::string_view record, std::size_t step) {
  std::string out;
  for (std::string_view rest = record.substr(5); !rest.empty();
       rest.remove_prefix(std::min(step, rest.size()))) {
    out += record.substr(0, 3);
    out += '\0';
    out += static_cast<char>(std::min(step, rest.size()));
    out += rest.substr(0, step);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  (void)http::read_hello(text);
  if (size < 2 || size > 1500) return 0;
  // The same bytes as what stands in a hello behind its suites: the lengths around them are right.
  const std::size_t step = 1 + bytes[0] % 32;
  text.remove_prefix(1);
  const std::string body = std::string("\x03\x03") + std::string(32, 'r') +
                           std::string("\0\0\2\x13\1\1\0", 7) + number(text.size(), 2) +
                           std::string(text);
  const std::string message = "\x01" + number(body.size(), 3) + body;
  const std::string record = std::string("\x16\3\1") + number(message.size(), 2) + message;
  const auto result = http::read_hello(record);
  if (result.kind != http::HelloKind::hello && result.kind != http::HelloKind::malformed)
    __builtin_trap();
  const auto again = http::read_hello(split(record, step));
  if (again.kind != result.kind || again.hello != result.hello) __builtin_trap();
  return 0;
}
