// One event on its way into the journal, as detectors and the summary look at it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "journal/members.h"

namespace journal {

struct Event {
  std::string_view type;
  const Members& members;
};

// "host:port" as detectors and alerts name a destination; IPv6 in brackets.
[[nodiscard]] inline std::string destination(const Members& members) {
  std::string host = members.text("host");
  if (host.empty()) host = members.text("address");
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return host + ":" + std::string(members.raw("port"));
}

// How often what the event tells of happened (`count` of aggregated refusals), at least 1.
[[nodiscard]] inline std::uint64_t times(const Members& members) {
  const std::uint64_t count = members.number("count").value_or(1);
  return count == 0 ? 1 : count;
}

}  // namespace journal
