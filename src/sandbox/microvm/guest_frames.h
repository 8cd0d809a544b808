// What the supervisor and a guest's pid 1 say to each other over the guest's watch port.
//
// To the guest: one GuestLaunch behind its length as eight bytes, then GuestRequests. A length of 0
// before that is a question, answered by `up` as the guest's start is. From the
// guest: GuestNotes and nothing else, so that the supervisor, which must not parse what comes from
// inside, reads records of one size whose every bit pattern means something harmless.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/wire.h"
#include "sandbox/sandbox.h"

namespace sandbox {

inline constexpr const char* kControlPort = "cerco.control";  // cerco-init's channel, tunnelled
inline constexpr const char* kWatchPort = "cerco.watch";
inline constexpr std::size_t kMaxLaunch = std::size_t{16} << 20;

struct GuestLaunch {
  std::string plan;  // encoded; as plan::inside_guest gives it
  std::string trust_bundle;
  std::string entropy;        // fresh, for the guest kernel's generator
  std::uint64_t seconds = 0;  // the time, since 1970
  std::uint64_t nanoseconds = 0;
  template <class W>
  void fields(W& w) {
    w(plan, trust_bundle, entropy, seconds, nanoseconds);
  }
};

enum class GuestAsk : std::uint32_t {
  counters,
  prepare_commands,
  make_command,  // groups for the command `number`, before its Exec goes over the control port
  kill_command,
  remove_command,  // answers 1 where nothing was left of it, else 0
  command_counters,
};
struct GuestRequest {
  GuestAsk kind = GuestAsk::counters;
  std::uint32_t sequence = 0;
  std::uint64_t number = 0;  // of a command
};

enum class GuestSays : std::uint32_t {
  up,       // pid 1 runs; the launch may come
  started,  // cerco-init runs
  answer,   // to the request `sequence`
  over,     // cerco-init has ended; `values` as of counters
  failed,   // `number` is an errno, `text` says where
};
struct GuestNote {
  GuestSays kind = GuestSays::failed;
  std::uint32_t sequence = 0;
  std::uint32_t base_kind = 0;
  std::int32_t number = 0;  // of an answer: 0, or why not
  std::array<std::uint64_t, 12> values{};
  std::uint32_t length = 0;
  char text[388] = {};

  [[nodiscard]] std::string_view said() const {
    return {text, length < sizeof text ? length : sizeof text};
  }
  void say(std::string_view what);
};
static_assert(sizeof(GuestNote) == 504);

void put_counters(const Counters& counters, GuestNote& note);
[[nodiscard]] Counters counters_in(const GuestNote& note);

// One whole record; `ms` is the longest wait. Errors: ETIMEDOUT, EPIPE at the end.
[[nodiscard]] base::Result<GuestNote> read_note(int port, int ms);
[[nodiscard]] base::Status write_whole(int port, std::string_view bytes, int ms);

template <class Record>
[[nodiscard]] std::string_view record_bytes(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

}  // namespace sandbox
