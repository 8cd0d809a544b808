// Counting refusals.
#include "journal/refusals.h"

namespace journal {
namespace {

// Cut between characters, so that what is left is still UTF-8.
std::string shortened(std::string text) {
  if (text.size() <= Refusals::kMostText) return text;
  std::size_t end = Refusals::kMostText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text + "…";
}

Refusal read(const Event& event) {
  const Members& members = event.members;
  Refusal refusal;
  refusal.kind = shortened(members.text("kind"));
  refusal.host = shortened(members.text("host"));
  if (refusal.host.empty()) refusal.host = shortened(members.text("address"));
  refusal.method = shortened(members.text("method"));
  refusal.path = shortened(members.text("path"));
  refusal.rule = shortened(members.text("rule"));
  const std::string fix = members.text("fix");
  // A rule that was cut would be no rule.
  if (fix.size() <= 2 * Refusals::kMostText) refusal.fix = fix;
  refusal.port = static_cast<std::uint16_t>(members.number("port").value_or(0) & 0xFFFF);
  refusal.count = times(members);
  if (event.type == "dns.decision") {
    refusal.kind = "host";
    refusal.port = 0;
  } else if (refusal.kind.empty()) {
    refusal.kind = members.raw("verdict") == R"("reject")" ? "protocol" : "host";
  }
  return refusal;
}

}  // namespace

void Refusals::look(const Event& event) {
  if (event.type != "egress.decision" && event.type != "dns.decision") return;
  const std::string_view verdict = event.members.raw("verdict");
  if (verdict != R"("deny")" && verdict != R"("reject")") return;
  Refusal refusal = read(event);
  std::string what;
  for (const std::string* part :
       {&refusal.kind, &refusal.host, &refusal.method, &refusal.path, &refusal.rule}) {
    what += *part + '\n';
  }
  what += std::to_string(refusal.port);
  if (const auto found = places_.find(what); found != places_.end()) {
    refusals_[found->second].count += refusal.count;
    return;
  }
  const std::size_t bytes =
      what.size() + refusal.fix.size() + 80;  // 80: lengths and numbers in the frame
  if (refusals_.size() >= kMost || bytes_ + bytes > kMostBytes) {
    more_ += refusal.count;
    return;
  }
  bytes_ += bytes;
  places_.emplace(std::move(what), refusals_.size());
  refusals_.push_back(std::move(refusal));
}

std::vector<Refusal> Refusals::all() const {
  std::vector<Refusal> all = refusals_;
  if (more_ > 0) {
    Refusal more;
    more.kind = "more";
    more.count = more_;
    all.push_back(more);
  }
  return all;
}

}  // namespace journal
