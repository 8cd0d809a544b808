// The command's standard streams: pipes into the sandbox, and what carries bytes between them and
// ours.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/base.h"

namespace cli {

// One direction: reads from one descriptor when its buffer is empty, writes to the other until it
// is.
class Relay {
 public:
  // Neither descriptor is owned; `quantum` bounds one write (os::write_quantum).
  Relay(int from, int to, std::size_t quantum, std::string what);

  // What to poll for; an entry with descriptor -1 where nothing is wanted.
  [[nodiscard]] std::array<pollfd, 2> wants() const;
  // Acts on what poll(2) answered. `allowance` is how many bytes may still be passed on: what comes
  // beyond it is read and dropped, and counts as `dropped()`.
  void act(const std::array<pollfd, 2>& polled, std::uint64_t& allowance);
  // Everything was read to the end of the file and written.
  [[nodiscard]] bool done() const { return ended_ && pending_.empty(); }
  // The reader of what we write is gone, or writing failed with `problem()`.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] bool dropped() const { return dropped_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // From now on a source that has nothing to read at once counts as ended.
  void finish() { finishing_ = true; }
  [[nodiscard]] bool wants_to_wait() const {
    return !finishing_ || (!broken_ && !pending_.empty());
  }

 private:
  void read(std::uint64_t& allowance);
  void write();

  int from_;
  int to_;
  std::size_t quantum_;
  std::string what_;
  std::string pending_;
  std::size_t written_ = 0;  // of pending_
  bool ended_ = false;
  bool broken_ = false;
  bool dropped_ = false;
  bool finishing_ = false;
  std::uint64_t bytes_ = 0;
  std::string problem_;
};

class Streams {
 public:
  // Pipes for a command whose input comes from `in` and whose output goes to `out` and `err`; at
  // most `limit` bytes of output, both together, are passed on.
  [[nodiscard]] static base::Result<Streams> make(int in, int out, int err, std::uint64_t limit);

  // The sandbox's ends: standard input, output, error. Closed here by close_far_ends().
  [[nodiscard]] std::array<int, 3> far_ends() const;
  void close_far_ends();

  static constexpr std::size_t kPolled = 6;
  // Descriptors to poll, kPolled of them, and what to do with poll's answer.
  void watch(std::vector<pollfd>& polled) const;
  void act(const pollfd* polled);

  // The command is over: no more input; what is left in the pipes is all that there will be.
  void finish();
  [[nodiscard]] bool drained() const;
  // How long poll(2) may wait, in its milliseconds: not at all while finishing with nothing to
  // write.
  [[nodiscard]] int patience() const;

  // finish(), then everything that is left in the pipes; a signal on `signals` (a signalfd) gives
  // up on whoever does not read. system: poll, or output that could not be written.
  base::Status drain(int signals);

  [[nodiscard]] bool over_limit() const;
  [[nodiscard]] std::uint64_t stdout_bytes() const { return output_.bytes(); }
  [[nodiscard]] std::uint64_t stderr_bytes() const { return error_.bytes(); }
  // Output that could not be written although somebody wants it (a full disk, say); "" when none.
  [[nodiscard]] std::string problem() const;

 private:
  struct Pipes {
    std::array<base::Fd, 3> near;
    std::array<base::Fd, 3> far;
  };
  Streams(Pipes pipes, int in, int out, int err, std::uint64_t limit);

  Pipes pipes_;
  Relay input_;
  Relay output_;
  Relay error_;
  std::uint64_t allowance_;
};

}  // namespace cli
