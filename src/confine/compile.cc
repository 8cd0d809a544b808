// Turns a table of system calls into a BPF program: a binary search by number with the verdicts as
// leaves.
//
// Calls whose verdict looks at no argument cost nothing after the first time: the kernel keeps a
// bitmap of them (seccomp_cache_prepare), which needs a program that loads only nr and arch on the
// way.
#include <linux/audit.h>
#include <linux/bpf_common.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include "confine/rules.h"

namespace confine {
namespace {

constexpr std::uint32_t kNumberAt = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchAt = offsetof(seccomp_data, arch);
constexpr std::uint32_t kX32 = 0x40000000;  // __X32_SYSCALL_BIT
constexpr std::size_t kFarthest = 255;      // what the 8 bits of a conditional jump reach

sock_filter load(std::uint32_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
}
sock_filter give(Verdict verdict) {
  return {BPF_RET | BPF_K, 0, 0, verdict};
}
sock_filter jump(std::uint16_t test, std::uint32_t value, std::size_t yes, std::size_t no) {
  if (yes > kFarthest || no > kFarthest) std::abort();  // a case of ours is too long
  return {static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), static_cast<std::uint8_t>(yes),
          static_cast<std::uint8_t>(no), value};
}
sock_filter always(std::size_t over) {
  return {BPF_JMP | BPF_JA, 0, 0, static_cast<std::uint32_t>(over)};
}

// Both architectures are little-endian: the low half of an argument comes first.
std::uint32_t offset_of(const Part& part) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                    part.arg * sizeof(std::uint64_t) +
                                    (part.half == Half::high ? sizeof(std::uint32_t) : 0));
}

// The case's instructions: falls through past its end when it does not apply.
Filter one_case(const Case& one) {
  // Written from the back, so that each jump knows how far the end is.
  Filter tail = {give(one.verdict)};
  for (auto part = one.all.rbegin(); part != one.all.rend(); ++part) {
    Filter test = {load(offset_of(*part))};
    if (part->mask != ~0U) test.push_back({BPF_ALU | BPF_AND | BPF_K, 0, 0, part->mask});
    for (std::size_t i = 0; i < part->any_of.size(); ++i) {
      const std::size_t left = part->any_of.size() - 1 - i;  // comparisons that follow
      test.push_back(jump(BPF_JEQ, part->any_of[i], left, left == 0 ? tail.size() : 0));
    }
    test.insert(test.end(), tail.begin(), tail.end());
    tail = std::move(test);
  }
  return tail;
}

Filter leaf(const Decision& decision) {
  Filter out;
  for (const Case& one : decision.cases) {
    const Filter code = one_case(one);
    out.insert(out.end(), code.begin(), code.end());
  }
  out.push_back(give(decision.otherwise));
  return out;
}

// A run of numbers from `first` to the next range's first that are decided alike.
struct Range {
  std::uint32_t first = 0;
  const Decision* decision = nullptr;
};

std::vector<Range> ranges(const Table& table, const Decision& unlisted, const Decision& beyond) {
  std::vector<Range> out;
  const auto add = [&](std::size_t number, const Decision& decision) {
    if (!out.empty() && *out.back().decision == decision) return;
    out.push_back({static_cast<std::uint32_t>(number), &decision});
  };
  for (std::size_t number = 0; number < table.calls.size(); ++number) {
    add(number, table.calls[number] ? *table.calls[number] : unlisted);
  }
  add(table.calls.size(), beyond);
  return out;
}

Filter search(std::span<const Range> range) {
  if (range.size() == 1) return leaf(*range.front().decision);
  const std::size_t middle = range.size() / 2;
  const Filter low = search(range.first(middle));
  const Filter high = search(range.subspan(middle));
  Filter out;
  if (low.size() <= kFarthest) {
    out.push_back(jump(BPF_JGE, range[middle].first, low.size(), 0));
  } else {
    out.push_back(jump(BPF_JGE, range[middle].first, 0, 1));
    out.push_back(always(low.size()));
  }
  out.insert(out.end(), low.begin(), low.end());
  out.insert(out.end(), high.begin(), high.end());
  return out;
}

}  // namespace

Filter compile(const Table& table, Arch arch) {
  const std::uint32_t native = arch == Arch::x86_64 ? AUDIT_ARCH_X86_64 : AUDIT_ARCH_AARCH64;
  Filter out = {load(kArchAt), jump(BPF_JEQ, native, 1, 0), give(kKill), load(kNumberAt)};
  if (arch == Arch::x86_64) {
    out.push_back(jump(BPF_JGE, kX32, 0, 1));
    out.push_back(give(error(ENOSYS)));
  }
  const Decision unlisted{{}, table.unlisted};
  const Decision beyond{{}, table.beyond};
  const Filter body = search(ranges(table, unlisted, beyond));
  out.insert(out.end(), body.begin(), body.end());
  if (out.size() > BPF_MAXINSNS) std::abort();
  return out;
}

std::string as_bytes(const Filter& filter) {
  return {reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter)};
}

}  // namespace confine
