// For the tests of init: the built cerco-init as pid 1 of namespaces of its own, spoken to as the
// supervisor does.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/base.h"
#include "base/frame.h"
#include "os/os.h"

namespace init {

// The end of a session or control channel that the host holds, with a limit on every wait.
class HostEnd {
 public:
  HostEnd() = default;
  explicit HostEnd(base::Fd socket) : socket_(std::move(socket)) {}
  template <class T>
  void say(const T& word, const std::vector<int>& fds) {
    say_bytes(base::encode(word), fds);
  }
  void say_bytes(const std::string& bytes, const std::vector<int>& fds);
  // The next frame; nullopt at the end, after 20 seconds, and for a malformed one.
  template <class T>
  std::optional<T> hear() {
    const auto bytes = hear_bytes();
    if (!bytes) return std::nullopt;
    auto word = base::decode<T>(*bytes, "frame");
    if (!word) return std::nullopt;
    return std::move(*word);
  }
  void close() { socket_.reset(); }
  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  std::optional<std::string> hear_bytes();
  base::Fd socket_;
};

// How it is spoken to: by its control channel, or through a tunnel over two pipes.
enum class Way { direct, tunnelled };

// A started cerco-init. Its mount namespace has a tmpfs of 8 MiB at /mnt, owned by 1000. Ended at
// its destruction.
class Inside {
 public:
  explicit Inside(Way way);
  ~Inside();
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  HostEnd control;
  // Of the pid namespace's first process, here; 0 after wait().
  [[nodiscard]] int pid() const { return pid_; }
  // Of cerco-init itself, whose children the commands are.
  [[nodiscard]] int init_pid() const;
  // What is at /mnt inside, by a path that root can use here.
  [[nodiscard]] std::string mnt() const { return "/proc/" + std::to_string(pid_) + "/root/mnt"; }
  // Its wait status, once it ends.
  int wait();

 private:
  void start_tunnelled();
  int pid_ = 0;
  os::Child tunnel_;
};

// What a command wrote and how it ended.
struct Outcome {
  bool started = false;
  frame::NotStarted not_started;
  frame::Ended ended;
  std::string output;  // standard output and error
};

// An Exec of `/bin/sh -c script` as uid 1000 in /, which a test may change.
frame::Exec shell(const std::string& script);
// Runs it to its end.
Outcome run_to_end(Inside& inside, const frame::Exec& exec);
// Starts it with its output going to the descriptor (or /dev/null for -1) and waits for Started.
void start(Inside& inside, const frame::Exec& exec, int output);
// A file session on `root` as 1000:1000.
HostEnd files(Inside& inside, const std::string& root);

}  // namespace init
