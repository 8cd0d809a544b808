// Any bytes as a host, a request target, an address and a range: canonical forms are stable, and no
// path that was accepted leaves its folder however it is decoded.
#include <cstdint>
#include <cstdlib>

#include "policy/policy.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void host(std::string_view text) {
  const auto first = policy::canonical_host(text);
  if (!first) return;
  const auto again = policy::canonical_host(first->name);
  check(again && *again == *first);
  if (first->is_address) check(policy::parse_address(first->name).has_value());
  (void)policy::blocked_name(first->name);
}

void path(std::string_view text, bool slash) {
  const auto first = policy::canonical_path(text, slash);
  if (!first) return;
  const auto again = policy::canonical_path(*first, slash);
  check(again && *again == *first);
  check(first->starts_with('/') && !first->contains("//") && !(*first + "/").contains("/../"));
  check(!(*first + "/").contains("/./") && !first->contains("%2E") && !first->contains('\\'));
  check(slash || !first->contains("%2F"));
}

void address(std::string_view text) {
  if (const auto first = policy::parse_address(text)) {
    const auto again = policy::parse_address(policy::to_string(*first));
    check(again && *again == *first);
    check(policy::judge(*first).guard == policy::Guard::open ||
          !policy::judge(*first).reason.empty());
  }
  if (const auto cidr = policy::parse_cidr(text)) check(policy::contains(*cidr, cidr->address));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  host(text);
  path(text, false);
  path(text, true);
  address(text);
  if (size == 17) {
    policy::Address raw;
    raw.v6 = data[0] % 2 == 1;
    for (std::size_t i = 0; i < (raw.v6 ? 16U : 4U); ++i) raw.bytes[i] = data[i + 1];
    const auto again = policy::parse_address(policy::to_string(raw));
    check(again && *again == raw);
    (void)policy::judge(raw);
  }
  return 0;
}
