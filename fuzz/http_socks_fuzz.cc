// Any bytes as messages of SOCKS5: never read past their end, a message never ends before what was
// needed to read it, and what stands behind it changes nothing.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http/http.h"

namespace {

std::size_t needs(const http::SocksGreeting& greeting) {
  return greeting.needs;
}
std::size_t needs(std::size_t bytes) {
  return bytes;
}
std::size_t needs(const http::SocksRequest& request) {
  return request.needs;
}

// As the gateway does it: exactly as many bytes as are asked for, until there is no more to ask.
template <class Read>
void grow(std::string_view all, Read read) {
  std::size_t have = 0;
  while (true) {
    const auto result = read(all.substr(0, have));
    if (!result) return;
    const std::size_t wanted = needs(*result);
    if (wanted > 600) __builtin_trap();
    if (wanted <= have) break;
    if (wanted > all.size()) return;
    have = wanted;
  }
  const auto whole = read(all.substr(0, have));
  const auto more = read(all);
  if (!whole || !more || needs(*whole) != have || needs(*more) != have) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  grow(text, http::read_socks_greeting);
  grow(text, http::read_socks_login);
  grow(text, http::read_socks_request);
  const auto request = http::read_socks_request(text);
  if (request && request->needs <= size && (request->port == 0 || request->name.size() > 255)) {
    __builtin_trap();
  }
  return 0;
}
