// Any bytes as the answer of a token endpoint: what is found stands in the answer.
#include <cstddef>
#include <cstdint>

#include "http/members.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (const char* path : {"access_token", "expires_in", "data.data.password", "a", "a.a", ""}) {
    const auto value = http::json_value(text, path);
    if (value && value->size() > size) __builtin_trap();
  }
  for (const char* name : {"AccessKeyId", "a", ""}) {
    const auto value = http::xml_value(text, name);
    if (value && value->size() > size) __builtin_trap();
  }
  return 0;
}
