// The relay: each direction is moved on as far as it goes, then both sleep together.
#include "gateway/relay.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <optional>

namespace gateway {
namespace {

constexpr std::size_t kBuffer = std::size_t{16} * 1024;
constexpr std::size_t kPipe = std::size_t{1024} * 1024;
// From here on a pipe pays for itself.
constexpr std::uint64_t kSpliceFrom = std::uint64_t{64} * 1024;
// After so many moves in a row others get their turn.
constexpr int kTurn = 16;

// One direction.
class Flow {
 public:
  enum class Pipes { may, never };
  enum class State { moved, waits, through, broken, spent, too_much, refused };

  // `most`: bytes that this direction may carry, next to what its meter lets through.
  // `frames`, where not null, sees all that goes through.
  // `pipes`: whether it may have a pipe of its own once it is long.
  Flow(Stream& from, Stream& to, std::string first, Meter meter, std::uint64_t most,
       http::FrameRedactor* frames, Pipes pipes)
      : from_(from),
        to_(to),
        may_join_(pipes == Pipes::may && frames == nullptr && !from.tls() && !to.tls()),
        buffer_(std::move(first)),
        meter_(meter),
        most_(most),
        frames_(frames) {
    take(buffer_.size());
    clean();
  }

  // One read and one write at most.
  State step() {
    if (through_) return State::through;
    if (over_) return *over_;
    if (held() == 0 ? from_.read_armed() : to_.write_armed()) return State::waits;
    if (left() < kSpliceFrom) {
      // The last bytes are read one buffer at a time, so that the one too many is seen.
      if (pipe_ && pipe_->held == 0) {
        pipe_.reset();
        may_join_ = true;
      }
    } else if (!pipe_ && may_join_ && total_ >= kSpliceFrom && buffer_.empty()) {
      join();
    }
    const State state = pipe_ ? splice() : copy();
    if (state == State::waits && held() == 0) from_.arm_read();
    if (state == State::waits && held() != 0) to_.arm_write();
    return state;
  }
  [[nodiscard]] bool through() const { return through_; }
  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  struct Pipe {
    base::Fd out;
    base::Fd in;
    std::size_t held = 0;
  };

  [[nodiscard]] std::size_t held() const { return pipe_ ? pipe_->held : buffer_.size() - at_; }

  [[nodiscard]] std::uint64_t left() const { return std::min(meter_.left(), most_ - taken_); }
  void take(std::uint64_t bytes) {
    if (bytes > most_ - taken_) {
      over_ = State::too_much;
    } else if (!meter_.take(bytes)) {
      over_ = State::spent;
    } else {
      taken_ += bytes;
    }
  }

  void clean() {
    if (frames_ == nullptr || over_) return;
    auto clean = frames_->push(buffer_);
    base::wipe(buffer_);
    if (!clean) over_ = State::refused;
    buffer_ = std::move(clean).value_or(std::string());
  }

  // Without a pipe, for want of descriptors or of what the kernel lets one user have in pipes,
  // bytes are copied as before.
  void join() {
    may_join_ = false;
    auto pipe = os::pipe_nonblocking();
    if (!pipe) return;
    if (!os::set_pipe_size(pipe->second.get(), kPipe)) return;
    pipe_.emplace(std::move(pipe->first), std::move(pipe->second));
    buffer_ = std::string();
  }

  State copy() {
    if (held() == 0) {
      buffer_.resize(std::clamp<std::uint64_t>(left(), 1, kBuffer));
      at_ = 0;
      const os::Moved got = from_.try_read(buffer_);
      buffer_.resize(got.bytes);
      if (got.error == EAGAIN) return State::waits;
      if (got.failed()) return State::broken;
      if (got.end()) return finish();
      take(got.bytes);
      clean();
      if (over_) return *over_;
      if (buffer_.empty()) return State::moved;
    }
    const os::Moved put = to_.try_write(std::string_view(buffer_).substr(at_));
    if (put.error == EAGAIN) return State::waits;
    if (put.failed()) return State::broken;
    at_ += put.bytes;
    total_ += put.bytes;
    if (at_ == buffer_.size()) {
      buffer_.clear();
      at_ = 0;
    }
    return State::moved;
  }

  State splice() {
    if (!from_.open() || !to_.open()) return State::broken;
    if (pipe_->held == 0) {
      const os::Moved got =
          os::splice(from_.fd(), pipe_->in.get(), std::min<std::uint64_t>(kPipe, left()));
      if (got.error == EAGAIN) return State::waits;
      if (got.failed()) return State::broken;
      if (got.end()) return finish();
      pipe_->held = got.bytes;
      take(got.bytes);
      if (over_) return *over_;
    }
    const os::Moved put = os::splice(pipe_->out.get(), to_.fd(), pipe_->held);
    if (put.error == EAGAIN) return State::waits;
    if (put.failed() || put.end()) return State::broken;
    pipe_->held -= put.bytes;
    total_ += put.bytes;
    return State::moved;
  }

  State finish() {
    through_ = true;
    buffer_ = std::string();
    to_.shut_down_write();
    return State::through;
  }

  Stream& from_;
  Stream& to_;
  bool may_join_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::optional<Pipe> pipe_;
  Meter meter_;
  std::uint64_t most_;
  http::FrameRedactor* frames_;
  std::uint64_t taken_ = 0;
  std::uint64_t total_ = 0;
  bool through_ = false;
  std::optional<State> over_;
};

std::string problem_of(Flow::State state) {
  if (state == Flow::State::spent) return "budget";
  if (state == Flow::State::too_much) return "max-body";
  if (state == Flow::State::refused) return "frames";
  return state == Flow::State::broken ? "reset" : "";
}

}  // namespace

asio::awaitable<Relayed> relay(Connection& connection, RelayStart start) {
  const auto pipes = connection.core.crowded() ? Flow::Pipes::never : Flow::Pipes::may;
  Flow up(*connection.client, *connection.upstream, std::move(start.up), start.budget.up,
          start.most_up, nullptr, pipes);
  Flow down(*connection.upstream, *connection.client, std::move(start.down), start.budget.down,
            policy::kUnlimited, start.frames, pipes);
  Relayed result;
  int moves = 0;
  connection.allow(connection.core.limits.idle);
  while (!up.through() || !down.through()) {
    const Flow::State one = up.step();
    const Flow::State other = down.step();
    result.problem = problem_of(problem_of(one).empty() ? other : one);
    if (!result.problem.empty() || (up.through() && down.through())) break;
    if (one == Flow::State::moved || other == Flow::State::moved) {
      if (++moves < kTurn) continue;
      // Somebody else's turn; what came for us meanwhile is kept by the wake.
      asio::post(connection.core.io, [alive = connection.client, &connection] {
        if (alive->attached()) connection.wake.notify();
      });
    }
    moves = 0;
    const bool half = up.through() || down.through();
    connection.allow(half ? connection.core.limits.half_closed : connection.core.limits.idle);
    if (!co_await connection.pause()) {
      result.problem = connection.end_problem();
      break;
    }
  }
  result.up = up.total();
  result.down = down.total();
  if (result.problem == "reset" || result.problem == "frames") {
    connection.client->reset();
    connection.upstream->reset();
  }
  co_return result;
}

}  // namespace gateway
