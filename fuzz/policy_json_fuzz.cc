// Any text as a JSON policy, and as a change from the command line.
#include <cstdint>
#include <cstdlib>

#include "policy/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto kind = static_cast<policy::OverrideKind>(data[0] % 4);
  const policy::Override change = {kind, text};
  (void)policy::parse("", "fuzz", {&change, 1}, {});
  const auto effective = policy::parse("{" + text, "fuzz", {}, {});
  if (!effective) return 0;
  const auto again = policy::parse(policy::to_json(effective->policy), "fuzz", {}, {});
  if (!again || again->policy != effective->policy) std::abort();
  return 0;
}
