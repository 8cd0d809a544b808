// What the kernel refused by itself, read from its netfilter log and told to the journal.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "gateway/core.h"
#include "gateway/refused_packet.h"

namespace gateway {

// Adds up what is the same: one event a destination, port and protocol within a second, with its
// count. Past 1,024 places at once the rest is added up without its places, for guarded ranges by
// itself, so that a scan elsewhere hides nothing that goes there.
class RefusedLog {
 public:
  explicit RefusedLog(Core& core) : core_(core) {}

  // Reads everything that the socket holds.
  void read(int socket);
  // Tells the journal of what is older than a second, or of everything.
  enum class Which { ripe, all };
  void tell(Which which);
  [[nodiscard]] bool holds() const { return !open_.empty(); }
  [[nodiscard]] std::uint64_t read_so_far() const { return logged_; }

 private:
  struct Key {
    policy::Address to;
    std::uint16_t port = 0;
    std::uint8_t protocol = 0;
    bool guarded = false;  // in a range that is not open
    auto operator<=>(const Key&) const = default;
  };
  struct Open {
    std::uint64_t count = 0;
    Clock::time_point since;
  };
  [[nodiscard]] Key key_of(const RefusedPacket& packet) const;
  [[nodiscard]] Decision decision(const Key& key, std::uint64_t count) const;

  Core& core_;
  std::map<Key, Open> open_;
  std::array<std::size_t, 2> places_{};  // in open_: elsewhere, in guarded ranges
  std::uint64_t logged_ = 0;
};

}  // namespace gateway
