// Inside confine only: a table of system calls with a verdict each, and its translation into a
// program.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "confine/confine.h"

namespace confine {

// A verdict is what the filter returns: SECCOMP_RET_… with its data.
using Verdict = std::uint32_t;
inline constexpr Verdict kAllow = SECCOMP_RET_ALLOW;
inline constexpr Verdict kKill = SECCOMP_RET_KILL_PROCESS;
[[nodiscard]] constexpr Verdict error(int number) {
  return SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(number) & SECCOMP_RET_DATA);
}
// Success is answered and nothing is done.
inline constexpr Verdict kPretend = error(0);

// One half of one argument, after the mask, is one of the values. The kernel takes most arguments
// that are judged here as 32 bits and ignores the upper half, so that judging the upper half as
// well would let a forged one pass a list of refusals (CVE-2019-10063).
enum class Half { low, high };
struct Part {
  unsigned arg = 0;
  Half half = Half::low;
  std::uint32_t mask = ~0U;
  std::vector<std::uint32_t> any_of;
  bool operator==(const Part&) const = default;
};
// The first case all of whose parts hold decides.
struct Case {
  std::vector<Part> all;
  Verdict verdict = kKill;
  bool operator==(const Case&) const = default;
};
struct Decision {
  std::vector<Case> cases;
  Verdict otherwise = kKill;
  bool operator==(const Decision&) const = default;
};

// The last number that was reviewed, the same on both architectures.
inline constexpr int kLastReviewed = 470;

struct Table {
  Verdict unlisted = kKill;  // numbers without a decision, up to the last reviewed one
  Verdict beyond = kKill;    // numbers past it
  std::vector<std::optional<Decision>> calls{kLastReviewed + 1};  // by number
};

// The program that decides as the table says.
[[nodiscard]] Filter compile(const Table& table, Arch arch);

// What the standard profile does with a call; `checked` ones look at arguments.
enum class Standard : std::uint8_t { allow, refuse, absent, checked };
struct Call {
  std::string_view name;
  int x86_64;  // -1: not there
  int aarch64;
  Standard standard;
  [[nodiscard]] int number(Arch arch) const { return arch == Arch::x86_64 ? x86_64 : aarch64; }
};
// Every call that was reviewed, sorted by name.
[[nodiscard]] std::span<const Call> calls();
// The number of a call on an architecture; nullopt where there is none. The name must be in
// calls().
[[nodiscard]] std::optional<std::size_t> number_of(std::string_view name, Arch arch);
// What Profile::isolate is made of.
[[nodiscard]] Table isolate_table(Arch arch);
// Sockets without a way to anything but TCP, UDP, Unix peers and the routing netlink.
[[nodiscard]] Decision socket_rules();
// Flags of clone(2) and unshare(2) that make namespaces. CLONE_NEWTIME shares its bit with clone's
// signal.
inline constexpr std::uint32_t kNamespacesOfClone = 0x7E020000;
inline constexpr std::uint32_t kNamespacesOfUnshare = 0x7E020080;

}  // namespace confine
