// Which words of cerco-init are taken.
#include "supervisor/believable.h"

#include <algorithm>
#include <csignal>

#include "sandbox/sandbox.h"

namespace supervisor {

namespace {

constexpr std::uint32_t kMostStatus = 255;
constexpr std::uint32_t kMostError = 4095;
constexpr std::size_t kMostStep = 64;

}  // namespace

bool can_be(const frame::Ended& ended) {
  const bool how =
      ended.signalled ? ended.code > 0 && ended.code < NSIG : ended.code <= kMostStatus;
  return how && ended.cpu_ms <= sandbox::kMostCounted;
}

bool can_be(const frame::NotStarted& failed) {
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  return !failed.step.empty() && failed.step.size() <= kMostStep &&
         std::ranges::all_of(failed.step, printable) && failed.error <= kMostError;
}

}  // namespace supervisor
