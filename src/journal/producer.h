// One process that hands events in: what it may write, which numbers it gave, how much it may
// flood.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/base.h"
#include "journal/folds.h"
#include "journal/journal.h"
#include "journal/members.h"
#include "os/os.h"

namespace journal {

// Whether a producer of this kind ("supervisor", "gateway", "broker") may write events of this
// type. checkpoint and journal.pruned are the journal's own.
[[nodiscard]] bool may_write(std::string_view who, std::string_view type);

// The members of a draft that may stand in the chain as they are; else bad_input with the reason.
[[nodiscard]] base::Result<Members> admit(std::string_view who, const Draft& draft);

// A bucket of kBurst events that fills by kPerSecond.
class Bucket {
 public:
  static constexpr std::uint64_t kBurst = 20'000;
  static constexpr std::uint64_t kPerSecond = 2'000;

  [[nodiscard]] bool take(const os::Instant& steady);

 private:
  std::uint64_t left_ = kBurst;
  std::int64_t filled_ms_ = -1;
};

class Producer {
 public:
  static constexpr std::size_t kMostRefs = 65536;
  static constexpr std::uint64_t kMostMalformed =
      16;  // alerts; further ones are counted as dropped

  explicit Producer(std::string who) : who_(std::move(who)) {}
  [[nodiscard]] const std::string& who() const { return who_; }

  // The event that this producer called `ref` has this number in the chain; the oldest are
  // forgotten.
  void remember(std::uint64_t ref, std::uint64_t seq);
  // Its number, 0 when it is not known or was dropped.
  [[nodiscard]] std::uint64_t recall(std::uint64_t ref) const;

  // Whether an event may be left out when there are too many: refusals and names, never what was
  // allowed, never what tells of a credential, nothing of the supervisor's.
  [[nodiscard]] bool droppable(std::string_view type, const Members& members) const;
  [[nodiscard]] bool within_rate(const os::Instant& steady) { return bucket_.take(steady); }
  // Whether one more malformed event gets an alert of its own.
  [[nodiscard]] bool malformed_is_news() { return malformed_++ < kMostMalformed; }

  // Whether a repeated refusal is to be added up instead of written.
  [[nodiscard]] bool fold(const Event& event, const os::Instant& steady) {
    return who_ == "gateway" && folds_.fold(event, steady);
  }
  [[nodiscard]] std::vector<Folds::Folded> take_folded() { return folds_.take(); }

  void drop(std::string_view type, const os::Instant& wall);
  [[nodiscard]] bool has_dropped() const { return !dropped_.empty(); }
  [[nodiscard]] bool owes() const { return has_dropped() || folds_.holds(); }
  // The members of an events.dropped event; counting starts anew.
  [[nodiscard]] std::string take_dropped(const os::Instant& wall);

 private:
  std::string who_;
  Bucket bucket_;
  Folds folds_;
  std::unordered_map<std::uint64_t, std::uint64_t> refs_;
  std::deque<std::uint64_t> order_;
  std::uint64_t malformed_ = 0;
  std::map<std::string, std::uint64_t> dropped_;
  os::Instant dropped_since_;
};

}  // namespace journal
