// Names are judged by the policy's one matcher, then looked up in the sandbox's own address book.
#include "gateway/dns.h"

#include "gateway/address_book.h"

namespace gateway {
namespace {

// The address of a name never changes, but clients that ask again tell us that the name is in use.
constexpr std::uint32_t kTtl = 60;
constexpr std::size_t kMostDenied = 1024;
// Stands for all names past that number; no name has a space.
const std::string kOthers = "(other names)";

std::string bytes_of(const policy::Address& address) {
  const std::size_t size = address.v6 ? 16 : 4;
  return {reinterpret_cast<const char*>(address.bytes.data()), size};
}

}  // namespace

std::optional<std::string> Dns::answer(std::string_view bytes, std::size_t most) {
  const auto question = read_question(bytes);
  if (!question) {
    if (question.error().drop) return std::nullopt;
    return write_malformed(question.error());
  }
  return write_answer(*question, look_up(*question), most);
}

Answer Dns::look_up(const Question& question) {
  if (question.klass != kClassIn) return {.code = Rcode::refused};
  if (core_.cut) return {.code = Rcode::refused};
  if (question.name.empty()) {
    return question.plain_name ? Answer{} : denied("(not a host name)", "host");
  }
  const auto host = policy::canonical_host(question.name);
  if (!host || host->is_address) return denied(question.name, "host");
  if (const auto sight = core_.canaries.in_name(host->name)) {
    if (!denied_.contains(host->name) &&
        !record_sight(core_.recorder, *sight, {.host = host->name, .port = 53})) {
      return {.code = Rcode::failure};
    }
    return denied(host->name, "canary");
  }
  const std::string blocked = policy::blocked_name(host->name);
  if (!blocked.empty()) return denied(host->name, "blocked-name");
  if (core_.holds(plan::Protection::name_filter) &&
      !policy::name_allowed(core_.policy(), host->name)) {
    return denied(host->name, "host");
  }
  // Of other types there is nothing: no TXT to carry data, no HTTPS to carry ECH keys (N90).
  if (question.type != kTypeA && question.type != kTypeAaaa) return {};
  return allowed(question);
}

Answer Dns::allowed(const Question& question) {
  const std::string name = policy::canonical_host(question.name)->name;
  const auto given = give_place(core_, name);
  if (!given) return denied(name, "too-many-names");
  if (given->met == Names::Met::new_name && !record_allowed(name)) return {.code = Rcode::failure};
  const auto& address = question.type == kTypeA ? given->place.v4 : given->place.v6;
  return {.addresses = {bytes_of(address)}, .ttl = kTtl};
}

// Of a name that audit mode alone lets resolve, what enforce would say goes with it.
base::Status Dns::record_allowed(const std::string& name) {
  if (policy::rule_on_name(core_.policy(), name) != policy::NameRuling::audited) {
    return record("allow", name, "", "", 1);
  }
  const policy::Verdict verdict = policy::decide_connection(
      core_.policy(), {.scheme = policy::Scheme::tls, .host = {.name = name}});
  return record("audit", name, "host", verdict.fix, 1);
}

Answer Dns::denied(const std::string& name, const std::string& reason) {
  Answer answer{.code = Rcode::no_name,
                .error = kErrorBlocked,
                .error_text = "cerco: no rule allows this name"};
  const bool known = denied_.contains(name) || denied_.size() < kMostDenied;
  Denied& entry = denied_[known ? name : kOthers];
  ++entry.asked;
  if (entry.told != 0) return answer;
  entry.told = 1;
  std::string fix;
  if (reason == "host" && known) {
    fix = policy::decide_connection(core_.policy(),
                                    {.scheme = policy::Scheme::tls, .host = {.name = name}})
              .fix;
  }
  if (!record("deny", known ? name : kOthers, reason, fix, 1)) return {.code = Rcode::failure};
  return answer;
}

base::Status Dns::record(std::string_view verdict, const std::string& name,
                         const std::string& reason, const std::string& fix, std::uint64_t count) {
  base::JsonObject object;
  object.add("verdict", verdict);
  if (!reason.empty()) object.add("kind", "host").add("reason", reason);
  object.add("policy", core_.recorder.policy()).add("host", name);
  if (count != 1) object.add("count", count);
  if (!fix.empty() && fix.size() <= journal::kMostText) object.add("fix", fix);
  return core_.recorder.event("dns.decision", object.members());
}

void Dns::finish() {
  for (auto& [name, entry] : denied_) {
    if (entry.asked == entry.told) continue;
    (void)record("deny", name, "host", "", entry.asked - entry.told);
    entry.told = entry.asked;
  }
}

}  // namespace gateway
