// Carries bytes between the command's pipes and our own standard streams, exactly and without
// waiting.
#include "cli/streams.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "os/os.h"

namespace cli {
namespace {

constexpr std::size_t kPiece = std::size_t{64} * 1024;
constexpr short kGone = POLLERR | POLLNVAL;

}  // namespace

Relay::Relay(int from, int to, std::size_t quantum, std::string what)
    : from_(from), to_(to), quantum_(quantum), what_(std::move(what)) {}

std::array<pollfd, 2> Relay::wants() const {
  std::array<pollfd, 2> wanted = {{{-1, 0, 0}, {-1, 0, 0}}};
  if (broken_) return wanted;
  if (!ended_ && pending_.empty()) wanted[0] = {from_, POLLIN, 0};
  if (!pending_.empty()) wanted[1] = {to_, POLLOUT, 0};
  return wanted;
}

void Relay::act(const std::array<pollfd, 2>& polled, std::uint64_t& allowance) {
  if (broken_) return;
  if (polled[0].revents != 0 || (finishing_ && !ended_ && pending_.empty())) read(allowance);
  if (polled[1].revents != 0) write();
}

void Relay::read(std::uint64_t& allowance) {
  auto got = os::read_some(from_, kPiece, what_);
  if (!got && got.error().number == EAGAIN && !finishing_) return;
  // A source that cannot be read has no more to say: the other side sees the end of the file.
  if (!got || got->empty()) {
    ended_ = true;
    return;
  }
  const std::size_t passed = std::min<std::uint64_t>(got->size(), allowance);
  dropped_ = dropped_ || passed < got->size();
  got->resize(passed);
  allowance -= passed;
  bytes_ += passed;
  pending_ = std::move(*got);
  written_ = 0;
}

void Relay::write() {
  const std::string_view rest = std::string_view(pending_).substr(written_, quantum_);
  const auto put = os::write_some(to_, rest, what_);
  if (!put && put.error().number == EAGAIN) return;
  if (!put) {
    broken_ = true;
    if (put.error().number != EPIPE) problem_ = put.error().line();
    pending_.clear();
    return;
  }
  written_ += *put;
  if (written_ == pending_.size()) pending_.clear();
}

base::Result<Streams> Streams::make(int in, int out, int err, std::uint64_t limit) {
  Pipes pipes;
  for (std::size_t i = 0; i < pipes.near.size(); ++i) {
    auto ends = TRY(os::pipe());  // to read from, to write to
    if (i == 0) std::swap(ends.first, ends.second);
    pipes.near[i] = std::move(ends.first);
    pipes.far[i] = std::move(ends.second);
    TRY(os::set_nonblocking(pipes.near[i].get()));
  }
  return Streams(std::move(pipes), in, out, err, limit);
}

Streams::Streams(Pipes pipes, int in, int out, int err, std::uint64_t limit)
    : pipes_(std::move(pipes)),
      input_(in, pipes_.near[0].get(), std::numeric_limits<std::size_t>::max(), "standard input"),
      output_(pipes_.near[1].get(), out, os::write_quantum(out), "standard output"),
      error_(pipes_.near[2].get(), err, os::write_quantum(err), "standard error"),
      allowance_(limit) {}

std::array<int, 3> Streams::far_ends() const {
  return {pipes_.far[0].get(), pipes_.far[1].get(), pipes_.far[2].get()};
}

void Streams::close_far_ends() {
  pipes_.far = {};
}

void Streams::watch(std::vector<pollfd>& polled) const {
  auto input = input_.wants();
  // Also without anything to write: an error there says that nobody reads the input any more.
  if (pipes_.near[0].open() && input[1].fd < 0) input[1] = {pipes_.near[0].get(), 0, 0};
  if (!pipes_.near[0].open()) input = {{{-1, 0, 0}, {-1, 0, 0}}};
  polled.insert(polled.end(), input.begin(), input.end());
  for (const Relay* relay : {&output_, &error_}) {
    const auto wanted = relay->wants();
    polled.insert(polled.end(), wanted.begin(), wanted.end());
  }
}

void Streams::act(const pollfd* polled) {
  if (pipes_.near[0].open()) {
    std::uint64_t everything = std::numeric_limits<std::uint64_t>::max();
    const bool unread = (polled[1].revents & kGone) != 0;
    if (!unread) input_.act({polled[0], polled[1]}, everything);
    if (unread || input_.done() || input_.broken()) pipes_.near[0].reset();
  }
  output_.act({polled[2], polled[3]}, allowance_);
  error_.act({polled[4], polled[5]}, allowance_);
  // Nobody reads our output: the command is to notice, as it would on a pipe of its own.
  if (output_.broken()) pipes_.near[1].reset();
  if (error_.broken()) pipes_.near[2].reset();
}

void Streams::finish() {
  pipes_.near[0].reset();
  output_.finish();
  error_.finish();
}

bool Streams::drained() const {
  return (output_.done() || output_.broken()) && (error_.done() || error_.broken());
}

int Streams::patience() const {
  return output_.wants_to_wait() || error_.wants_to_wait() ? -1 : 0;
}

base::Status Streams::drain(int signals) {
  finish();
  std::vector<pollfd> polled;
  while (!drained()) {
    polled.assign({{signals, POLLIN, 0}});
    watch(polled);
    (void)TRY(os::wait_for(polled, patience()));
    if (polled[0].revents != 0) break;
    act(&polled[1]);
  }
  if (const std::string what = problem(); !what.empty()) {
    return base::fail(base::Kind::system, "output", what, {});
  }
  return {};
}

bool Streams::over_limit() const {
  return output_.dropped() || error_.dropped();
}

std::string Streams::problem() const {
  return output_.problem().empty() ? error_.problem() : output_.problem();
}

}  // namespace cli
