// Any bytes as a request: whatever is admitted is written so that it is read back the same, and no
// second message hides in it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "http/http.h"

namespace {

void check(std::string_view text, http::Leg leg) {
  const auto end = http::find_head_end(text, 0);
  if (!end || *end == 0) return;
  http::Admission admission;
  admission.leg = leg;
  admission.protected_names = {"x-token"};
  auto head = http::parse_request(text.substr(0, *end), admission);
  if (!head) return;
  const std::string sent = http::write_request(*head);
  if (head->host.empty()) return;
  const auto again_end = http::find_head_end(sent, 0);
  if (!again_end || *again_end != sent.size()) __builtin_trap();
  admission.leg = head->method == "CONNECT" ? http::Leg::proxy : http::Leg::tls;
  const auto again = http::parse_request(sent, admission);
  head->minor = 1;
  if (!again || *again != *head) __builtin_trap();
  const std::vector<http::Marked> marked = {
      {"phs7q2m4xk3n5v2ab", http::header_slot("x-token", "a {secret}")}};
  (void)http::find_placeholders(*head, marked);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  for (http::Leg leg : {http::Leg::plain, http::Leg::tls, http::Leg::proxy}) check(text, leg);
  return 0;
}
