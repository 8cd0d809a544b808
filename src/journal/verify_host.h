// Checking the host chain, and what it says about the runs.
#pragma once

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

// Reads keys/host.last and journal/host.jsonl, in this order, since the chain may grow meanwhile.
[[nodiscard]] base::Result<HostView> check_host(const std::string& state_dir, const PublicKey& key);

}  // namespace journal
