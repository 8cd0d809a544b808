// Any text as a TOML policy: a Policy whose two printed forms parse to the same, or an error.
#include <cstdint>
#include <cstdlib>

#include "policy/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto effective = policy::parse(text, "fuzz", {}, {});
  if (!effective && effective.error().line().empty()) std::abort();
  if (!effective) return 0;
  const auto again = policy::parse(policy::show(*effective), "fuzz", {}, {});
  if (!again || again->policy != effective->policy) std::abort();
  const auto json = policy::parse(policy::to_json(effective->policy), "fuzz", {}, {});
  if (!json || json->policy != effective->policy) std::abort();
  return 0;
}
