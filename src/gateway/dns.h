// Synthetic DNS: what the sandbox is answered, without a question to anybody else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gateway/core.h"
#include "gateway/dns_message.h"

namespace gateway {

// Answers for one sandbox. A name that the policy allows gets an address of the pool, known to the
// journal from then on; any other gets NXDOMAIN, one event a name however often it is asked.
class Dns {
 public:
  explicit Dns(Core& core) : core_(core) {}

  // The answer to one message, at most `most` bytes; nullopt when it is not to be answered. An
  // error of the journal makes it SERVFAIL.
  [[nodiscard]] std::optional<std::string> answer(std::string_view bytes, std::size_t most);
  // Records how often refused names were asked for again.
  void finish();

 private:
  struct Denied {
    std::uint64_t asked = 0;
    std::uint64_t told = 0;
  };
  [[nodiscard]] Answer look_up(const Question& question);
  [[nodiscard]] Answer allowed(const Question& question);
  [[nodiscard]] Answer denied(const std::string& name, const std::string& reason);
  [[nodiscard]] base::Status record_allowed(const std::string& name);
  [[nodiscard]] base::Status record(std::string_view verdict, const std::string& name,
                                    const std::string& reason, const std::string& fix,
                                    std::uint64_t count);

  Core& core_;
  std::map<std::string, Denied> denied_;
};

}  // namespace gateway
