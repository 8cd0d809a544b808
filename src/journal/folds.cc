// Folding of repeated refusals.
#include "journal/folds.h"

#include <algorithm>
#include <array>

namespace journal {
namespace {

// What differs between refusals of one kind.
constexpr std::array<std::string_view, 9> kVarying = {"method", "path", "url",   "fix",  "conn",
                                                      "tls",    "of",   "mixed", "count"};

bool folds(const Event& event) {
  if (event.type == "credential.refused") return true;
  if (event.type != "egress.decision") return false;
  const std::string_view verdict = event.members.raw("verdict");
  return verdict == R"("deny")" || verdict == R"("reject")";
}

std::string steady_members(const Event& event) {
  base::JsonObject object;
  for (const Members::Member& member : event.members.all()) {
    if (std::ranges::find(kVarying, member.key) == kVarying.end()) {
      object.raw(member.key, member.value);
    }
  }
  return object.members();
}

std::string others(std::string_view type) {
  base::JsonObject object;
  if (type == "egress.decision") object.add("verdict", "deny").add("kind", "host");
  object.add("reason", "too-many-places").add("host", "(other places)");
  return object.members();
}

}  // namespace

bool Folds::fold(const Event& event, const os::Instant& steady) {
  if (!folds(event)) return false;
  Kind& kind = kind_of(event, steady.seconds);
  const std::int64_t passed = (steady.seconds - kind.refilled) / kRefillSeconds;
  if (passed > 0) {
    kind.told -= std::min(kind.told, static_cast<std::uint64_t>(passed));
    kind.refilled += passed * kRefillSeconds;
  }
  if (kind.told < kTold) {
    ++kind.told;
    return false;
  }
  kind.folded += times(event.members);
  ++folded_;
  return true;
}

Folds::Kind& Folds::kind_of(const Event& event, std::int64_t second) {
  std::string members = steady_members(event);
  std::string name = std::string(event.type) + ' ' + members;
  if (const auto found = kinds_.find(name); found != kinds_.end()) return found->second;
  if (kinds_.size() >= kMostKinds) forget_quiet_ones(second);
  if (kinds_.size() >= kMostKinds || name.size() > kMostKindBytes) {
    name = event.type;
    members = others(event.type);
  }
  const auto [place, fresh] = kinds_.try_emplace(std::move(name));
  if (fresh) {
    place->second.type = event.type;
    place->second.members = std::move(members);
    place->second.refilled = second;
  }
  return place->second;
}

void Folds::forget_quiet_ones(std::int64_t second) {
  if (forgot_ == second) return;
  forgot_ = second;
  std::erase_if(kinds_, [second](const auto& entry) {
    const Kind& kind = entry.second;
    const auto passed = static_cast<std::uint64_t>((second - kind.refilled) / kRefillSeconds);
    return kind.folded == 0 && kind.told <= passed;
  });
}

std::vector<Folds::Folded> Folds::take() {
  std::vector<Folded> all;
  for (auto& [name, kind] : kinds_) {
    if (kind.folded == 0) continue;
    all.push_back({kind.type, kind.members + ",\"count\":" + std::to_string(kind.folded)});
    kind.folded = 0;
  }
  folded_ = 0;
  return all;
}

}  // namespace journal
