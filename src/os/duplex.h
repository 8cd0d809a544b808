// Copying between two stream sockets, both ways, without waiting and with a bound on what is held.
#pragma once

#include <poll.h>

#include <array>
#include <span>
#include <string>

namespace os {

class Duplex {
 public:
  // Two stream sockets; neither is owned.
  Duplex(int left, int right);

  static constexpr std::size_t kPolled = 2;
  // What to poll for; descriptor -1 where nothing is wanted.
  [[nodiscard]] std::array<pollfd, kPolled> wants() const;
  // Moves what can be moved now. The end of one side's stream becomes the end of what the other is
  // sent.
  void act(std::span<const pollfd, kPolled> polled);
  // Both streams have ended and all went over, or one side is gone.
  [[nodiscard]] bool over() const { return failed_ || (ways_[0].shut && ways_[1].shut); }
  // It was not the end of both streams.
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  struct Way {
    int from = -1;
    int to = -1;
    std::string held;  // read, and not sent yet
    std::size_t sent = 0;
    bool ended = false;  // nothing more comes
    bool shut = false;   // and the other side was told
  };
  void read(Way& way);
  void send(Way& way);

  std::array<Way, 2> ways_;
  bool failed_ = false;
};

}  // namespace os
