// Names that a rule spells out are few; those below a wildcard are the client's to invent.
#include "gateway/address_book.h"

#include <algorithm>

namespace gateway {
namespace {

bool by_wildcard(const Core& core, const std::string& name) {
  return std::ranges::none_of(core.policy().egress, [&](const policy::Egress& rule) {
    return rule.host == name || (!rule.tcp.empty() && rule.tcp.starts_with(name + ":"));
  });
}

void alarm(Core& core, const std::string& name) {
  if (std::exchange(core.names_alarmed, true)) return;
  base::JsonObject object;
  object.add("detector", "dns_names").add("severity", "high").add("action", "alert");
  object.add("text", "more names than any ordinary task looks up").add("host", name);
  (void)core.recorder.event("alert", object.members());
}

}  // namespace

std::optional<Names::Given> give_place(Core& core, const std::string& name) {
  const bool wildcard = !core.names.knows(name) && by_wildcard(core, name);
  const bool full = wildcard && core.wildcard_names >= core.limits.wildcard_names;
  const auto given = full ? std::nullopt : core.names.give(name);
  if (!given) {
    alarm(core, name);
  } else if (wildcard) {
    ++core.wildcard_names;
  }
  return given;
}

}  // namespace gateway
