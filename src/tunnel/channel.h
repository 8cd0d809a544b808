// Inside tunnel only: one descriptor of ours and its counterpart at the other end.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "tunnel/tunnel.h"
#include "tunnel/words.h"

namespace tunnel {

// What came for a descriptor and was not written yet. Its bound is the window, kept by the caller.
class Queue {
 public:
  struct Item {
    std::string bytes;
    std::vector<base::Fd> fds;
  };
  void push(Item item) {
    waiting_ += item.bytes.size();
    items_.push_back(std::move(item));
  }
  [[nodiscard]] bool empty() const { return next_ == items_.size(); }
  // Of the first item, what is left of it.
  [[nodiscard]] std::string_view front() const {
    return std::string_view(items_[next_].bytes).substr(written_);
  }
  [[nodiscard]] const std::vector<base::Fd>& front_fds() const { return items_[next_].fds; }
  // Takes `count` bytes off the first item; its cost once it is gone, else 0.
  std::size_t took(std::size_t count);
  [[nodiscard]] std::uint64_t waiting() const { return waiting_; }  // bytes
  // Throws everything away; what it cost.
  std::size_t clear();

 private:
  std::vector<Item> items_;
  std::size_t next_ = 0;
  std::size_t written_ = 0;
  std::uint64_t waiting_ = 0;
};

class Channel {
 public:
  // `kind` is the host's use of the descriptor.
  Channel(Side side, std::uint32_t number, Kind kind, base::Fd fd);

  [[nodiscard]] std::uint32_t number() const { return number_; }
  // Both ways are over, and the other end knows.
  [[nodiscard]] bool over() const { return sent_end_ && got_end_ && queue_.empty(); }

  // What is to be polled; descriptor -1 where nothing is. `room`: the stream takes more now.
  [[nodiscard]] pollfd wants(bool room) const;
  // Reads once and appends what there was to `out`.
  void on_readable(std::string& out);
  void on_writable();
  // The descriptor's other end is gone.
  void on_broken();

  // A word of the other end; false where it is nonsense.
  [[nodiscard]] bool take(Word word);
  // Appends what is owed to the other end: credit, an end, a stop.
  void settle(std::string& out);

  // How much the command whose descriptor this is has written that has not gone on: inside, bytes
  // in the pipe; at the host, bytes in the queue. Counted once, at its end.
  void mark();
  [[nodiscard]] bool passed_mark() const { return mark_ == 0; }
  std::uint64_t command = 0;  // 0: of none

  // The stream is over: nothing is read any more, and what is queued is still written.
  void cut();
  [[nodiscard]] bool written() const { return !sink_ || queue_.empty(); }

 private:
  [[nodiscard]] bool is_messages() const { return kind_ == Kind::messages; }
  [[nodiscard]] bool is_socket() const { return is_messages() || kind_ == Kind::stream; }
  [[nodiscard]] bool may_read() const;
  [[nodiscard]] std::optional<std::string> read_some();
  void passed(std::uint64_t bytes) { mark_ -= std::min(mark_, bytes); }
  void end_source();
  void break_sink();
  void end_sink();
  void close_if_unused();

  Side side_;
  std::uint32_t number_;
  Kind kind_;
  base::Fd fd_;
  bool source_ = false;              // it is still read
  bool sink_ = false;                // it is still written
  std::size_t credit_ = kWindow;     // what the other end still takes
  std::size_t allowance_ = kWindow;  // what it may still send
  std::size_t owed_ = 0;             // of the allowance, to be given back
  bool owes_end_ = false;
  bool owes_stop_ = false;
  bool sent_end_ = false;
  bool got_end_ = false;
  bool said_stop_ = false;
  Queue queue_;
  std::uint64_t mark_ = 0;
};

// How the host uses a descriptor that came with a message as its `position`th: sockets both ways by
// their type, others as they are open; what is open for both is read as a command's standard input
// and written as its output. nullopt for what cannot be carried.
[[nodiscard]] std::optional<Kind> kind_of_descriptor(int fd, std::size_t position);

// Inside: what stands for a descriptor of that kind. `ours` is the tunnel's end.
struct Local {
  base::Fd ours;
  base::Fd theirs;
};
[[nodiscard]] base::Result<Local> make_local(Kind kind);

[[nodiscard]] base::Status set_waitless(int fd);

}  // namespace tunnel
