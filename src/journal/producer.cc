// Producers are trusted by degree: the gateway reads hostile bytes all day, the supervisor reads
// frames.
#include "journal/producer.h"

#include <algorithm>
#include <array>
#include <span>

#include "journal/chain.h"

namespace journal {
namespace {

constexpr std::array kReserved = {"v", "seq", "id", "time", "run", "task", "type", "prev"};

// Its alerts are held to the detectors that only it can be: see kGatewayDetectors.
constexpr std::array<std::string_view, 6> kGateway = {"dns.decision",       "egress.decision",
                                                      "egress.ended",       "credential.used",
                                                      "credential.refused", "alert"};
constexpr std::array<std::string_view, 1> kGatewayDetectors = {"dns_names"};
constexpr std::array<std::string_view, 4> kBroker = {"credential.issued", "credential.used",
                                                     "credential.refused", "credential.revoked"};
// All there are (contract, Journal); those that the supervisor may write come first.
constexpr std::array<std::string_view, 23> kEventTypes = {"run.planned",
                                                          "run.started",
                                                          "run.ended",
                                                          "command.started",
                                                          "command.ended",
                                                          "exec",
                                                          "files.changed",
                                                          "dns.decision",
                                                          "egress.decision",
                                                          "egress.ended",
                                                          "credential.issued",
                                                          "credential.refused",
                                                          "credential.revoked",
                                                          "limit.hit",
                                                          "syscall.refused",
                                                          "policy.changed",
                                                          "operator.action",
                                                          "containment",
                                                          "alert",
                                                          "events.dropped",
                                                          "credential.used",
                                                          "journal.pruned",
                                                          "checkpoint"};
constexpr auto kSupervisor = std::span(kEventTypes).first<20>();

bool among(std::span<const std::string_view> types, std::string_view type) {
  return std::ranges::find(types, type) != types.end();
}

}  // namespace

std::span<const std::string_view> event_types() {
  return kEventTypes;
}

bool may_write(std::string_view who, std::string_view type) {
  if (who == "gateway") return among(kGateway, type);
  if (who == "broker") return among(kBroker, type);
  return who == "supervisor" && among(kSupervisor, type);
}

base::Result<Members> admit(std::string_view who, const Draft& draft) {
  if (!may_write(who, draft.type))
    return base::bad_input("event", "a type that it may not write", {});
  const std::size_t most = who == "supervisor" ? kMaxMembersSupervisor : kMaxMembers;
  if (draft.members.size() > most) return base::bad_input("event", "too long", {});
  Members members = TRY(Members::parse(draft.members));
  // With the journal's own members the line must still be one that Members reads.
  if (members.all().size() + kReserved.size() + 1 > Members::kMaxCount) {
    return base::bad_input("event", "too many members", {});
  }
  for (const char* key : kReserved) {
    if (members.has(key))
      return base::bad_input("event", "a key that the journal writes itself", {});
  }
  if (who == "gateway" && draft.type == "alert" &&
      !among(kGatewayDetectors, members.text("detector"))) {
    return base::bad_input("event", "an alert that it may not raise", {});
  }
  if (draft.of != 0 && members.has("of"))
    return base::bad_input("event", "a key appears twice", {});
  return members;
}

bool Bucket::take(const os::Instant& steady) {
  const std::int64_t now_ms = steady.seconds * 1000 + steady.nanoseconds / 1'000'000;
  if (filled_ms_ < 0) filled_ms_ = now_ms;
  const auto elapsed = static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ms - filled_ms_));
  if (const std::uint64_t fresh = elapsed * kPerSecond / 1000; fresh > 0) {
    left_ = std::min(kBurst, left_ + fresh);
    filled_ms_ = now_ms;
  }
  if (left_ == 0) return false;
  --left_;
  return true;
}

void Producer::remember(std::uint64_t ref, std::uint64_t seq) {
  if (ref == 0) return;
  if (refs_.insert_or_assign(ref, seq).second) order_.push_back(ref);
  if (order_.size() <= kMostRefs) return;
  refs_.erase(order_.front());
  order_.pop_front();
}

std::uint64_t Producer::recall(std::uint64_t ref) const {
  const auto found = refs_.find(ref);
  return found == refs_.end() ? 0 : found->second;
}

bool Producer::droppable(std::string_view type, const Members& members) const {
  if (who_ != "gateway") return false;
  if (type == "dns.decision" || type == "alert") return true;
  if (type != "egress.decision") return false;
  const std::string_view verdict = members.raw("verdict");
  return verdict == R"("deny")" || verdict == R"("reject")";
}

void Producer::drop(std::string_view type, const os::Instant& wall) {
  if (dropped_.empty()) dropped_since_ = wall;
  ++dropped_[std::string(type)];
}

std::string Producer::take_dropped(const os::Instant& wall) {
  base::JsonObject counts;
  for (const auto& [type, count] : dropped_) counts.add(type, count);
  dropped_.clear();
  base::JsonObject members;
  members.add("producer", who_)
      .add("since", time_text(dropped_since_))
      .add("until", time_text(wall));
  return members.raw("counts", counts.text()).members();
}

}  // namespace journal
