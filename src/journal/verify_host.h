// Checking the host chain, and what it says about the runs.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "journal/keys.h"

namespace journal {

// One head of a run's chain that the host chain has recorded.
struct Recorded {
  std::string at;  // start, checkpoint, end, abandoned
  std::uint64_t events = 0;
  std::string head;
  bool operator==(const Recorded&) const = default;
};

struct HostView {
  std::map<std::string, std::vector<Recorded>> runs;
  std::map<std::string, Recorded>
      pruned;           // runs whose files retention removed, with their last head
  std::string problem;  // "" when the host chain holds
  std::vector<std::string> notes;
};

// How what lies in a state folder is opened: whatever stands there, nothing is waited for.
inline constexpr int kJournalFile = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
[[nodiscard]] bool is_missing(const base::Error& error);  // no such file, or no folder to hold it
[[nodiscard]] bool is_strange(const base::Error& error);  // a link, a socket
[[nodiscard]] base::Result<bool> is_regular(const base::Fd& file, std::string_view name);

// Reads keys/host.last and journal/host.jsonl, in this order, since the chain may grow meanwhile.
[[nodiscard]] base::Result<HostView> check_host(const std::string& state_dir, const PublicKey& key);

}  // namespace journal
