// Any bytes as a DNS query: what is read can be answered, within bounds.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gateway/dns_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto question = gateway::read_question({reinterpret_cast<const char*>(data), size});
  if (!question) return 0;
  const gateway::Answer answer{.addresses = {"\1\2\3\4", std::string(16, 'x')},
                               .ttl = 60,
                               .error = gateway::kErrorBlocked,
                               .error_text = "why"};
  const std::string written = gateway::write_answer(*question, answer, 512);
  if (written.size() > 512 || written.size() < 12) std::abort();
  // An answer is never taken for a question.
  if (gateway::read_question(written)) std::abort();
  return 0;
}
