// Any bytes as an encoded Plan: decoding bounds itself, and verify() and the printers take whatever
// comes out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto plan = base::decode<plan::Plan>(text, "plan");
  if (!plan) return 0;
  if (base::decode<plan::Plan>(base::encode(*plan), "plan").value() != *plan) __builtin_trap();
  (void)plan::verify(*plan);
  (void)plan::explain(*plan);
  (void)plan::to_json(*plan);
  return 0;
}
